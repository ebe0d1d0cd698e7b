--- The value of rates and windows: a record of the spent tokens under each of the numbers in use, as when one version of a policy
--- follows on another, process by process, or when some processes lease and others do not. Spent tokens count under all of them.
--- Numbers that are new to a key begin with the state of the largest of the others, carried over when the key is next touched.
--
-- Room is how much more would pass under some numbers: capacity less debt, limit less count. It is negative where tokens were granted or
-- booked before they conform. An amount that passes under some numbers takes as much room under all others, with two exceptions. It takes only
-- existing room: having admitted less than others is no debt. Yet if its own room is below zero, it leaves no other numbers more than that:
--
--   room' = max(room - amount, min(room, 0, the room left under the numbers that let it pass))
--
-- So the numbers together let no more pass than the largest capacity, filled at the highest rate. Take a budget S that begins with the most room
-- of any numbers, gains the highest rate and loses every amount that passes. S is never less than the room under any numbers: under those that let an
-- amount pass both lose it, and elsewhere room' is at most the larger of `room - amount` and the room left under those. As none lets an amount
-- pass beyond its room, or before it has that room, S bounds what passes. Were others filled to zero alone, a key of which all tokens are lent
-- ahead of their time would pass its whole rate under each of the numbers: nothing of it would count elsewhere.
-- The time for which a token may be kept after its grant: steps/rate.lua.
--
-- value     records joined by "|", those written last first: "<state>;<numbers>", after the first "<state>;<numbers>;<until>", in microseconds;
--           and "#<block>" while the key is banned, "~<holds>" while something is held (steps/holds.lua), also where nothing was spent
--
-- An encoding with records has
-- numbered  reads `part.numbers`, as the record of another has them
-- renewed   a part to which nothing has happened; of another beside the requested one
-- restored  a part from its state
-- whole     the most tokens that pass at once, by which records are compared
-- carried   a part as follows from another, with other numbers: at most the limit is spent
-- state     of a part, and the microseconds until it is full
-- amountOf  converts tokens to an amount; tokensOf an amount to tokens
-- filled    a part after its own amount passed under the numbers of another part, in the state after that
-- lends     a part that is about to grant a lease, if that differs
-- relieved  a part after tokens of a lease or a booking came back under the numbers of another: `by.returned`, if that is to be reported

local MOST_RECORDS = 4

--- Verbs by which something passes, and those that count elsewhere as they do here.
local PASSES = { take = true, reserve = true, lease = true }
local COUNTS = { penalize = true, refund = true }

local function otherPart(part, numbers, state, untilUs)
  local other = { encoding = part.encoding, numbers = numbers }
  other.encoding.numbered(other)
  other.encoding.renewed(other, part)
  other.encoding.restored(other, state)
  part.mended = part.mended or other.mended
  if untilUs == '' then
    local _, lifeUs = other.encoding.state(other)
    other.untilUs = now + math.max(IN_USE_US, ceilDiv(lifeUs, 1000) * 1000)
  else
    other.untilUs = tonumber(untilUs)
  end
  return other
end

--- The one that admits the most at once; of equals the first.
local function largestOf(parts)
  local largest = parts[1]
  for _, other in ipairs(parts) do
    if other.encoding.whole(other) > largest.encoding.whole(largest) then largest = other end
  end
  return largest
end

local function readRecords(part)
  local encoding = part.encoding
  local records, endUs, lengthUs, holds = string.match(redis.call('GET', part.key) or '', '^([^#~]*)#?(%d*) ?(%d*)~?(.*)$')
  readBlock(part, endUs, lengthUs)
  readHolds(part, holds)
  encoding.renewed(part)
  if records == '' then return chargeLapsed(part) end
  local others, isKnown = {}, false
  for state, numbers, untilUs in string.gmatch(records, '([^;|]+);([^;|]+);?(%d*)') do
    if numbers == part.numbers then
      isKnown = true
      encoding.restored(part, state)
    else
      others[#others + 1] = otherPart(part, numbers, state, untilUs)
    end
  end
  part.others = others
  if not isKnown then
    part.mended = true
    encoding.carried(part, largestOf(others))
  end
  chargeLapsed(part)
end

--- The parts that encodings with records have in common.
local function readNumbered(part)
  part.encoding.numbered(part)
  readRecords(part)
  return true
end

local function limitOf(part)
  return part.limit
end

local function sameAmount(_, tokens)
  return tokens
end

--- Counts an amount under the numbers of others, too.
local function countElsewhere(part, verb, amount)
  if not part.others then return end
  for _, other in ipairs(part.others) do
    local own = part.encoding.amountOf(other, part.encoding.tokensOf(part, amount))
    if PASSES[verb] then part.encoding.filled(other, own, part, verb)
    elseif COUNTS[verb] then part.encoding.stepped(other, verb, own)
    elseif verb == 'giveBack' and part.encoding.relieved then part.encoding.relieved(other, part) end
  end
end

--- The other records that are kept: of too many the largest and those written last. Numbers without a record begin with the state of the largest,
--- so that the budget needs only the largest.
local function keptOthers(part)
  local kept = {}
  for _, other in ipairs(part.others or {}) do
    if other.untilUs > now then kept[#kept + 1] = other end
  end
  if #kept >= MOST_RECORDS then
    local largest = largestOf(kept)
    for i = #kept, 1, -1 do
      if #kept >= MOST_RECORDS and kept[i] ~= largest then table.remove(kept, i) end
    end
  end
  return kept
end

local function writeRecords(part)
  local state, lifeUs = part.encoding.state(part)
  local value = state .. ';' .. part.numbers
  for _, other in ipairs(keptOthers(part)) do
    local otherState, otherUs = part.encoding.state(other)
    value = value .. '|' .. otherState .. ';' .. other.numbers .. ';' .. whole(other.untilUs)
    lifeUs = math.max(lifeUs, otherUs)
  end
  part.mended = false
  if lifeUs == 0 then value, part.others = '', nil end
  if part.blockedUs > 0 then value = value .. '#' .. blockOf(part) end
  local holds, holdsUs = holdsOf(part)
  if holds ~= '' then value = value .. '~' .. holds end
  lifeUs = math.max(lifeUs, holdsUs)
  if value == '' then return redis.call('DEL', part.key) end
  redis.call('SET', part.key, value, 'PXAT', endMs(math.max(lifeUs, part.blockedUs)))
end
