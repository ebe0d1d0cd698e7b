--- Tokens that were drawn, and not spent.
---
--- given  tokens; endUs; grantId
--- reply  1; 0 where they ended too long ago: only the home can use them

local isInTime = given.endUs > now - LATE_US
if isInTime then add(given.tokens, given.endUs, given.grantId) end
save()
return isInTime and 1 or 0
