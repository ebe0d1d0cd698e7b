--- What the home answered.
---
--- given  tokens; endsUs, how long they last from the claim on; agoUs, how long ago that was by the caller's clock; grantId of the home, 0
---        where none can be given back; claimedUs of a renewal, absent for what a take was told; isScarce, where that was too
---        little; least, the fewest of use; deniedUs, how long fewer would be denied; blockedUs, how long the key is banned; rest and
---        fullUs, tokens left at the home, and until it is full there; total, the pace of all regions, absent where unknown
--- reply  when the tokens end

local claimed, finish = given.claimedUs, 0
if (claimed or now) >= key.banKnown then key.blocked = given.blockedUs > 0 and now + given.blockedUs or 0 end
if given.blockedUs > 0 then
  batches = {}
elseif claimed then
  -- The earlier of both, as the clock may have been set meanwhile.
  finish = now + given.endsUs - given.agoUs
  if claimed <= now then finish = math.min(finish, claimed + given.endsUs) end
  add(given.tokens, finish, given.grantId)
end
if claimed then key.claimEnd, key.metered = 0, now end
key.denied, key.deniedCost = 0, 0
if given.isScarce then
  local againUs = claimed and math.max(given.deniedUs, key.claimed + PERIOD_US - now) or given.deniedUs
  key.denied, key.deniedCost = now + math.min(againUs, LONGEST_DENIAL_US), given.least
end
key.rest, key.full, key.total = given.rest, now + given.fullUs, given.total or key.total
save()
return finish
