--- Tokens for a process to spend by itself, of one policy.
--
-- KEYS   its key
-- ARGV   numbers, and a request as in steps/parts.lua: how many tokens are wanted; the horizon in microseconds, within which tokens may conform
--        later; the fewest useful tokens: with fewer available the script grants none
-- reply  the time; tokens that may be spent from now on; tokens that may be spent later, one after another as they conform; debt before;
--        microseconds for which the key is banned; microseconds until the fewest would pass, and until the key is full, not of a rate;
--        microseconds until the later tokens may be spent, and until all of them are void, not of a rate, whose debt determines both; where
--        something is held how much, of which none is granted

local part = partOf(next(encodings), KEYS[1], ARGV[1], ARGV[2])
local least = tonumber(part.more)
if not part.encoding.read(part) then return redis.error_reply('WINDOW ' .. whole(now)) end

if part.mended then part.encoding.write(part) end

if part.encoding.lends then part.encoding.lends(part) end
local before = part.encoding.status(part, 1)
local ready, later, laterUs, endUs = 0, 0, 0, 0
local want, horizonUs = part.amount, part.bound
if part.held > 0 then want, horizonUs = math.max(math.min(want, part.encoding.room(part) - part.held), 0), 0 end
if part.blockedUs == 0 then ready, later, laterUs, endUs = part.encoding.leased(part, want, least, horizonUs) end
if ready + later > 0 then
  if part.others then countElsewhere(part, 'lease', part.encoding.amountOf(part, ready + later)) end
  part.encoding.write(part)
end
local _, untilFree, untilNew = statusBeside(part, part.held > 0 and part.encoding.amountOf(part, least) or least)
return { now, told(ready), later, told(before), part.blockedUs, untilFree, untilNew, laterUs, endUs, part.held > 0 and told(part.held) or nil }
