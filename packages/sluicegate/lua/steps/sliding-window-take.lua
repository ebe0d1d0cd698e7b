--- The ordinary take of one sliding window that passes, unrolled as that of a rate in steps/rate-take.lua. The whole script handles denials, a
--- window later than now, and counts whose products are not exact.
--
-- reply  the weighted count after it; 0; microseconds until the key is full
--
-- tools/embed-lua.ts puts this step before all others of scripts/decide.lua. Where it does not return, the whole script runs.

if not ARGV[3] then
  local value = redis.call('GET', KEYS[1]) or '0 0 0;' .. ARGV[1]
  local number, previous, current, numbers, limit, windowUs = string.match(value, '^(%d+) (%d+) (%d+);((%d+) (%d+))$')
  if numbers == ARGV[1] then
    local leftUs = windowUs - now % windowUs
    local windows = (now + leftUs) / windowUs - 1 - number
    if windows == 1 then previous, current = current, 0 end
    if windows > 1 then previous, current = 0, 0 end
    local product = previous * leftUs
    local used = current + ARGV[2] + (product + -product % windowUs) / windowUs
    if windows >= 0 and product < 4503599627370496 and used - limit <= 0 then
      value = whole(number + windows) .. ' ' .. previous .. ' ' .. whole(current + ARGV[2]) .. ';' .. numbers
      redis.call('SET', KEYS[1], value, 'PXAT', whole(math.ceil((now + leftUs + windowUs) / 1000) + SLACK_MS))
      return { used, 0, leftUs + windowUs }
    end
  end
end
