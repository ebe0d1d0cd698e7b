--- One process sets out to renew the key. The claim ends by itself, and two renewals at once only bring more tokens.
---
--- given  claimedUs, the last renewal that the caller knows of; claimUs, how long the claim holds
--- reply  the time; 0 where another process was first

local isFirst = key.claimEnd <= now and key.claimed == given.claimedUs
if isFirst then
  key.claimed, key.claimEnd = now, now + given.claimUs
  -- News is on its way: until then others need not call the home.
  if key.denied > 0 then key.denied = now + given.claimUs end
end
save()
return isFirst and now or 0
