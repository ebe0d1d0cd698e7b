--- The ordinary take of one rate, unrolled: a script creates its functions at each call, and this path needs none of them.
-- It decides as they do. It leaves to them, without a change, a banned key and a value that was written under other numbers, booked ahead or
-- left by another clock.
--
-- reply  the debt after a take that passed, else -1 - debt
--
-- tools/embed-lua.ts puts this step before all others of scripts/decide.lua. Where it does not return, the whole script runs.

if not ARGV[3] then
  local value = redis.call('GET', KEYS[1]) or '0 0;' .. ARGV[1]
  local us, beyond, numbers, unitsPerUs, unlent, capacity = string.match(value, '^(%d+) (%d+);(%d+ (%d+) (%d+) (%d+))$')
  if numbers == ARGV[1] and capacity - 9007199254740900 <= 0 then
    local lent = capacity - unlent
    local debt = math.max(0, (us - now) * unitsPerUs + beyond + lent)
    if debt - lent - capacity <= 0 then
      if debt + ARGV[2] - capacity > 0 then return -1 - debt end
      debt = debt + ARGV[2]
      beyond = (debt - lent) % unitsPerUs
      us = now + (debt - lent - beyond) / unitsPerUs
      local endMs = math.ceil((us + 1 + lent / unitsPerUs) / 1000) + SLACK_MS
      redis.call('SET', KEYS[1], whole(us) .. ' ' .. whole(beyond) .. ';' .. numbers, 'PXAT', whole(endMs))
      return debt
    end
  end
end
