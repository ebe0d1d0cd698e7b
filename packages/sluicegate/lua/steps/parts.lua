--- Arguments and reply of every script.
--
-- KEYS   for each policy its key, all in one hash slot
-- ARGV   of one policy: numbers, request, and the verb unless it is "take"; of several: the verb, then for each encoding, numbers, request
--        encoding      rate, fixed-window, sliding-window, sliding-log, concurrency
--        numbers   those of the encoding in one text, as it stands in the value of a key
--        request   "<amount>" or "<amount> <bound>" or "<amount> <bound> <more>"
--        amount    units of a rate, otherwise tokens; of `block` (a ban) microseconds
--        bound     of `reserve` the longest wait in microseconds, of `giveBack` the time that the booking was for,
--                  of a lease the fewest useful tokens
--        more      further arguments of an encoding
--        verb      take, peek, refund, penalize, block, reset, reserve, giveBack; of permits release, heartbeat
-- reply  the time; then for each policy six:
--        1    whether the verb changed anything, or a peek would
--        2    debt, in the unit of the amount
--        3    microseconds for which the key stays banned
--        4    microseconds until the requested amount would pass, one token where none was requested; not of a rate of which nothing is held,
--             whose debt determines it, and without meaning after a take that passed
--        5    microseconds until it is full, and nothing held; not of a rate of which nothing is held
--        6    microseconds until the reserved tokens may be spent; not of a rate
--        then for each policy the tokens that are held, unless these are none of all: steps/holds.lua
--        or fewer, for an ordinary take: steps/*-take.lua
-- error  WINDOW <time>: no calendar window that the caller supplied contains that time
--
-- An encoding has
-- read      the state of a key and its ban; false when the calendar windows are not known
-- passes    whether the amount passes now, bans aside
-- stepped   the key after a verb, and whether anything changed
-- write     stores it, with its ban, for as long as either matters
-- status    debt, microseconds until the amount would pass, microseconds until it is full
-- leased    see scripts/lease.lua
-- and what steps/holds.lua needs

local encodings = {}

local function partOf(encoding, key, numbers, request)
  local amount, bound, more = string.match(request, '^(%S+) ?(%S*) ?(.*)$')
  return {
    encoding = encodings[encoding], key = key, numbers = numbers, amount = tonumber(amount), bound = tonumber(bound) or 0, more = more,
    slots = {}, held = 0,
  }
end

--- The expiry of a key that is kept for `us` microseconds from now, in milliseconds since the Unix epoch: always finite. A time, not a
--- duration, so that the running time of the script does not matter.
local function endMs(us)
  return whole(ceilDiv(now + math.max(us, 0), 1000) + SLACK_MS)
end

--- A ban has an end and a greatest length: "<end> <length>", in microseconds.
local function blockOf(part)
  return whole(now + part.blockedUs) .. ' ' .. whole(part.blockUs)
end

--- A ban that would last longer than its length was written under a clock that was ahead of this one, and begins now.
local function readBlock(part, endUs, lengthUs)
  part.blockedUs, part.blockUs = math.max((tonumber(endUs) or 0) - now, 0), tonumber(lengthUs) or 0
  if part.blockedUs <= part.blockUs then return end
  part.blockedUs, part.mended = part.blockUs, true
end
