--- What the home answered.
---
--- given  tokens; endsUs, how long they last from the claim on; agoUs, how long ago that was by the caller's clock; grantId of the home, 0
---        where none can be given back; all four absent for what a take was told; askedUs, when the home was asked; isScarce, where that was too
---        little; least, the fewest of use; deniedUs, how long fewer would be denied; blockedUs, how long the key is banned; rest and
---        fullUs, tokens left at the home, and until it is full there; total, the pace of all regions, absent where unknown
--- reply  when the tokens end

local isRenewal, asked, finish = given.tokens, given.askedUs, 0
if asked >= key.banKnown then key.blocked = given.blockedUs > 0 and now + given.blockedUs or 0 end
if given.blockedUs > 0 then
  batches = {}
elseif isRenewal then
  -- The earlier of both, as the clock may have been set meanwhile.
  finish = now + given.endsUs - given.agoUs
  if asked <= now then finish = math.min(finish, asked + given.endsUs) end
  add(given.tokens, finish, given.grantId)
end
if isRenewal then key.claimEnd, key.metered = 0, now end
key.denied, key.deniedCost = 0, 0
-- What the home had before a ban, or its end, is not what it denies since.
if given.isScarce and asked >= key.banKnown - BAN_SETTLES_US then
  local againUs = isRenewal and math.max(given.deniedUs, key.claimed + PERIOD_US - now) or given.deniedUs
  key.denied, key.deniedCost = now + math.min(againUs, LONGEST_DENIAL_US), given.least
end
key.rest, key.full, key.total = given.rest, now + given.fullUs, given.total or key.total
save()
return finish
