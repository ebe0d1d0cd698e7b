--- Tokens for a process to spend by itself, of one policy.
--
-- KEYS   its key
-- ARGV   numbers, and a request as in steps/parts.lua: how many tokens are wanted; the fewest useful tokens: with fewer available the script
--        grants none
-- reply  the time; tokens that may be spent from now on; debt before; microseconds for which the key is banned; microseconds until the fewest
--        would pass, and until the key is full, not of a rate; microseconds until the tokens are void, not of a rate, whose lease has one
--        length; where something is held how much, of which none is granted

local part = partOf(next(encodings), KEYS[1], ARGV[1], ARGV[2])
local least = part.bound
if not part.encoding.read(part) then return redis.error_reply('WINDOW ' .. whole(now)) end

if part.mended then part.encoding.write(part) end

if part.encoding.lends then part.encoding.lends(part) end
local before = part.encoding.status(part, 1)
local tokens, endUs, want = 0, 0, part.amount
if part.held > 0 then want = math.max(math.min(want, part.encoding.room(part) - part.held), 0) end
if part.blockedUs == 0 then tokens, endUs = part.encoding.leased(part, want, least) end
if tokens > 0 then
  if part.others then countElsewhere(part, 'lease', part.encoding.amountOf(part, tokens)) end
  part.encoding.write(part)
end
local _, untilFree, untilNew = statusBeside(part, part.held > 0 and part.encoding.amountOf(part, least) or least)
return { now, told(tokens), told(before), part.blockedUs, untilFree, untilNew, endUs, part.held > 0 and told(part.held) or nil }
