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

--- What is kept for so many microseconds is kept in the server for as many milliseconds, and never for ever.
local function lifeMs(us)
  return whole(math.max(ceilDiv(math.max(us, 0), 1000), 0) + SLACK_MS)
end
