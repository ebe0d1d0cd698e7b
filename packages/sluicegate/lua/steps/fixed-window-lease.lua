--- The lease of one fixed window, unrolled as its take in steps/fixed-window-take.lua. It leaves the same cases to the whole script.
-- Reply: as in scripts/lease.lua.
--
-- tools/embed-lua.ts puts this step before all others of scripts/lease.lua. Where it does not return, the whole script runs.

local value = redis.call('GET', KEYS[1]) or '0 0 0;' .. ARGV[1]
local begin, finish, count, numbers, limit, windowUs = string.match(value, '^(%d+) (%d+) (%d+);((%d+) (%d+))$')
if numbers == ARGV[1] and begin - now <= 0 and limit - 9007199254740900 <= 0 then
  local want, least = string.match(ARGV[2], '^(%d+) (%d+)$')
  local leftUs = windowUs - now % windowUs
  local isOver = finish - now <= 0
  if isOver then begin, finish, count = whole(now + leftUs - windowUs), whole(now + leftUs), 0 end
  local tokens = math.min(math.max(limit - count, 0), want)
  if tokens - least < 0 then tokens = 0 end
  local after = count + tokens
  local untilFree, untilNew = after + least - limit > 0 and leftUs or 0, after > 0 and leftUs or 0
  if tokens == 0 then return { now, 0, after, 0, untilFree, untilNew, 0 } end
  value = begin .. ' ' .. finish .. ' ' .. whole(after) .. ';' .. numbers
  if isOver then redis.call('SET', KEYS[1], value, 'PXAT', whole(math.ceil(finish / 1000) + SLACK_MS))
  -- The key expires with its window already.
  else redis.call('SET', KEYS[1], value, 'KEEPTTL') end
  return { now, tokens, count - 0, 0, untilFree, untilNew, leftUs }
end
