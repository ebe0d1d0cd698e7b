--- A take at a rate that comes with the call, as in redis-cell. A key is its arrival time: microseconds since the Unix epoch, a dot, and the
--- nanoseconds beyond them, as doubles do not hold both together.
--
-- KEYS   the key
-- ARGV   microseconds and nanoseconds (0 to 999) that the tokens add, 0 and 0 to change nothing; the same of the longest debt
-- reply  1 if the take passed; microseconds and nanoseconds that the key then owes

local owedUs, owedNs = 0, 0
local stored = redis.call('GET', KEYS[1])
if stored then
  local us, ns = string.match(stored, '^(%d+)%.(%d+)$')
  if not us then return redis.error_reply('DAMAGED ' .. KEYS[1] .. ' is no arrival time') end
  if tonumber(us) >= now then owedUs, owedNs = tonumber(us) - now, tonumber(ns) end
end

local nextUs, nextNs = owedUs + tonumber(ARGV[1]), owedNs + tonumber(ARGV[2])
if nextNs > 999 then nextUs, nextNs = nextUs + 1, nextNs - 1000 end
local mostUs, mostNs = tonumber(ARGV[3]), tonumber(ARGV[4])
if nextUs > mostUs or (nextUs == mostUs and nextNs > mostNs) then return { 0, owedUs, owedNs } end

if nextUs > owedUs or nextNs > owedNs then
  redis.call('SET', KEYS[1], whole(now + nextUs) .. '.' .. nextNs, 'PX', whole(math.ceil(nextUs / 1000) + SLACK_MS))
end
return { 1, nextUs, nextNs }
