--- The lease of one sliding window, unrolled as its take in steps/sliding-window-take.lua. The whole script handles a window later than now,
-- and counts whose products are not exact. Reply: as in scripts/lease.lua.
--
-- tools/embed-lua.ts puts this step before all others of scripts/lease.lua. Where it does not return, the whole script runs.

local value = redis.call('GET', KEYS[1]) or '0 0 0;' .. ARGV[1]
local number, previous, current, numbers, limit, windowUs = string.match(value, '^(%d+) (%d+) (%d+);((%d+) (%d+))$')
if numbers == ARGV[1] then
  local leftUs = windowUs - now % windowUs
  local windows = (now + leftUs) / windowUs - 1 - number
  if windows == 1 then previous, current = current, 0 end
  if windows > 1 then previous, current = 0, 0 end
  if windows >= 0 and math.max(previous, limit) * windowUs < 4503599627370496 then
    previous, current = previous - 0, current - 0

    --- Microseconds until `amount` more would pass.
    local function untilFree(amount)
      local room = limit - current - amount
      if previous <= room then return 0 end
      if room > 0 then
        local us = leftUs - (windowUs * room - windowUs * room % previous) / previous
        if us < leftUs then return math.max(us, 0) end
      end
      room = limit - amount
      if room < 0 then return leftUs + windowUs end
      if current <= room then return leftUs end
      return leftUs + math.max(windowUs - (windowUs * room - windowUs * room % current) / current, 0)
    end

    local want, least = string.match(ARGV[2], '^(%d+) (%d+)$')
    local product = previous * leftUs
    local used = current + (product + -product % windowUs) / windowUs
    local tokens = math.min(math.max(limit - used, 0), want)
    if tokens - least < 0 then tokens = 0 end
    current = current + tokens
    local untilNew = current > 0 and leftUs + windowUs or previous > 0 and leftUs or 0
    if tokens == 0 then return { now, 0, used, 0, untilFree(least), untilNew, 0 } end
    value = whole(number + windows) .. ' ' .. whole(previous) .. ' ' .. whole(current) .. ';' .. numbers
    redis.call('SET', KEYS[1], value, 'PXAT', whole(math.ceil((now + leftUs + windowUs) / 1000) + SLACK_MS))
    return { now, tokens, used, 0, untilFree(least), untilNew, leftUs }
  end
end
