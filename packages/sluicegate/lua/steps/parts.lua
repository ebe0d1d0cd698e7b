--- What every script is given and answers.
--
-- KEYS   for each policy the key of its state and the key of its block, all in one hash slot
-- ARGV   1    verb: take, peek, refund, penalize, block, reset, reserve, cancel; of permits release, heartbeat
--        then for each policy ten:
--        1    form: rate, fixed-window, sliding-window, sliding-log, concurrency
--        2    amount: units of a rate, otherwise tokens; of a block microseconds
--        3    bound: of `reserve` the longest wait in microseconds, of `cancel` the time that the booking was for
--        4-10 the numbers of the form
-- reply  the time; then for each policy six:
--        1    whether the verb changed anything, or a peek would
--        2    debt, in what the amount is counted
--        3    microseconds for which the key stays blocked
--        4    microseconds until as much as was asked for would pass, one token where nothing was; not of a rate, whose debt says it
--        5    microseconds until it is as good as new; not of a rate
--        6    microseconds until what was reserved may be spent; not of a rate
-- error  WINDOW <time>: no window of a calendar that the caller knows is around that time

local ARGUMENTS_BEFORE = 1
local ARGUMENTS = 10

local forms = {}

local function argument(part, i)
  return tonumber(ARGV[part.at + 3 + i])
end

local function text(part, i)
  return ARGV[part.at + 3 + i]
end

--- Until when what is kept for so many microseconds from now is kept, in milliseconds since the Unix epoch: never for ever. A time and not a
--- duration, so that it does not matter how long the server took to come here.
local function endMs(us)
  return whole(ceilDiv(now + math.max(us, 0), 1000) + SLACK_MS)
end

--- A block ends at a time and lasts at most so long: "<end> <length>", in microseconds. One that would last longer was written by a clock
--- that was ahead of this one, and begins now.
local function writeBlock(part, us)
  part.blockedUs = us
  redis.call('SET', part.blockKey, whole(now + us) .. ' ' .. whole(us), 'PXAT', endMs(us))
end

local function readBlock(part, value)
  part.blockedUs = 0
  if not value then return end
  local endUs, lengthUs = string.match(value, '^(%d+) (%d+)$')
  part.blockedUs = math.max(endUs - now, 0)
  if part.blockedUs > tonumber(lengthUs) then writeBlock(part, tonumber(lengthUs)) end
end
