--- What every script is given and answers.
--
-- KEYS   for each policy its key, all in one hash slot
-- ARGV   of one policy: numbers, request, and the verb unless it is "take"; of several: the verb, then for each form, numbers, request
--        form      rate, fixed-window, sliding-window, sliding-log, concurrency
--        numbers   those of the form in one text, as it stands in the value of a key
--        request   "<amount>" or "<amount> <bound>" or "<amount> <bound> <more>"
--        amount    units of a rate, otherwise tokens; of a block microseconds
--        bound     of `reserve` the longest wait in microseconds, of `cancel` the time that the booking was for
--        more      what else a form needs
--        verb      take, peek, refund, penalize, block, reset, reserve, cancel; of permits release, heartbeat
-- reply  the time; then for each policy six:
--        1    whether the verb changed anything, or a peek would
--        2    debt, in what the amount is counted
--        3    microseconds for which the key stays blocked
--        4    microseconds until as much as was asked for would pass, one token where nothing was; not of a rate, whose debt says it, and
--             of no use where a take passed
--        5    microseconds until it is as good as new; not of a rate
--        6    microseconds until what was reserved may be spent; not of a rate
--        or less, of an ordinary take: steps/*-take.lua
-- error  WINDOW <time>: no window of a calendar that the caller knows is around that time
--
-- A form has
-- read      what is known of a key, its block among it; false when a calendar's windows are not known
-- passes    whether so much may be taken now, but for a block
-- stepped   the key after a verb, and whether anything changed
-- write     keeps it, with its block, for as long as either matters
-- standing  debt, microseconds until so much would pass, microseconds until it is as good as new
-- leased    see scripts/lease.lua

local forms = {}

local function partOf(form, key, numbers, request)
  local amount, bound, more = string.match(request, '^(%S+) ?(%S*) ?(.*)$')
  return { form = forms[form], key = key, numbers = numbers, amount = tonumber(amount), bound = tonumber(bound) or 0, more = more }
end

--- Until when what is kept for so many microseconds from now is kept, in milliseconds since the Unix epoch: never for ever. A time and not a
--- duration, so that it does not matter how long the server took to come here.
local function endMs(us)
  return whole(ceilDiv(now + math.max(us, 0), 1000) + SLACK_MS)
end

--- A block ends at a time and lasts at most so long: "<end> <length>", in microseconds.
local function blockOf(part)
  return whole(now + part.blockedUs) .. ' ' .. whole(part.blockUs)
end

--- One that would last longer than its length was written by a clock that was ahead of this one, and begins now.
local function readBlock(part, endUs, lengthUs)
  part.blockedUs, part.blockUs = math.max((tonumber(endUs) or 0) - now, 0), tonumber(lengthUs) or 0
  if part.blockedUs <= part.blockUs then return end
  part.blockedUs, part.mended = part.blockUs, true
end
