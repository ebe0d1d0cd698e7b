--- The lease of one rate, unrolled as its take in steps/rate-take.lua. It leaves the same cases to the whole script. Reply: as in
-- scripts/lease.lua.
--
-- tools/embed-lua.ts puts this step before all others of scripts/lease.lua. Where it does not return, the whole script runs.

local value = redis.call('GET', KEYS[1]) or '0 0;' .. ARGV[1]
local us, beyond, numbers, unitsPerToken, unitsPerUs, unlent, capacity = string.match(value, '^(%d+) (%d+);((%d+) (%d+) (%d+) (%d+))$')
if numbers == ARGV[1] and capacity - 9007199254740900 <= 0 then
  local lent = capacity - unlent
  -- Leased tokens arrive when the lease ends.
  local before = math.max(0, (us - now) * unitsPerUs + beyond) + lent
  if before - lent - capacity <= 0 then
    local want, least = string.match(ARGV[2], '^(%d+) (%d+)$')
    local tokens = math.min(math.max(math.floor((capacity - before) / unitsPerToken), 0), want)
    if tokens - least < 0 then return { now, 0, before, 0, 0, 0, 0 } end
    local debt = before + tokens * unitsPerToken
    beyond = (debt - lent) % unitsPerUs
    us = now + (debt - lent - beyond) / unitsPerUs
    local endMs = math.ceil((us + 1 + lent / unitsPerUs) / 1000) + SLACK_MS
    redis.call('SET', KEYS[1], whole(us) .. ' ' .. whole(beyond) .. ';' .. numbers, 'PXAT', whole(endMs))
    return { now, tokens, before, 0, 0, 0, 0 }
  end
end
