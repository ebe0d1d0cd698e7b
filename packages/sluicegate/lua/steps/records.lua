--- What rates and windows keep in a value: a record of what was spent under each of the numbers in use, as when one version of a policy
--- follows on another, process by process. What is spent counts under all of them, so that none lets more pass than if all had been its own;
--- of what passed under others as much as the limit has room for: to have let pass less than they did is no debt.
--- Numbers that are new to a key begin with what those say that were written last, carried over when the key is next touched.
--
-- value     records joined by "|", those written last first: "<state>;<numbers>", after the first "<state>;<numbers>;<until>", in microseconds;
--           and "#<block>" while the key is blocked, also where nothing was spent
--
-- A form with records has
-- numbered  reads `part.numbers`, as the record of another has them
-- renewed   a part to which nothing has happened; of another beside the one that is asked about
-- restored  a part as its state says
-- carried   a part as follows from another, with other numbers: at most the limit is spent
-- state     of a part, and the microseconds until it is as good as new
-- amountOf  of so many tokens, and tokensOf of an amount
-- and a verb more, fill: what passed elsewhere, as much of it as there is room for

local MOST_RECORDS = 4

--- Each verb as it counts elsewhere. What is cancelled comes back only where it was booked.
local COUNTED_AS = { take = 'fill', reserve = 'fill', lease = 'fill', penalize = 'penalize', refund = 'refund' }

local function otherPart(part, numbers, state, untilUs)
  local other = { form = part.form, numbers = numbers }
  other.form.numbered(other)
  other.form.renewed(other, part)
  other.form.restored(other, state)
  part.mended = part.mended or other.mended
  if untilUs == '' then
    local _, lifeUs = other.form.state(other)
    other.untilUs = now + math.max(IN_USE_US, ceilDiv(lifeUs, 1000) * 1000)
  else
    other.untilUs = tonumber(untilUs)
  end
  return other
end

local function readRecords(part)
  local form = part.form
  local records, endUs, lengthUs = string.match(redis.call('GET', part.key) or '', '^([^#]*)#?(%d*) ?(%d*)$')
  readBlock(part, endUs, lengthUs)
  form.renewed(part)
  if records == '' then return end
  local others, isKnown = {}, false
  for state, numbers, untilUs in string.gmatch(records, '([^;|]+);([^;|]+);?(%d*)') do
    if numbers == part.numbers then
      isKnown = true
      form.restored(part, state)
    else
      others[#others + 1] = otherPart(part, numbers, state, untilUs)
    end
  end
  part.others = others
  if not isKnown then
    part.mended = true
    form.carried(part, others[1])
  end
end

--- Counts an amount under the numbers of others, too.
local function countElsewhere(part, verb, amount)
  local as = COUNTED_AS[verb]
  if not as or not part.others then return end
  for _, other in ipairs(part.others) do
    part.form.stepped(other, as, part.form.amountOf(other, part.form.tokensOf(part, amount)))
  end
end

local function writeRecords(part)
  local state, lifeUs = part.form.state(part)
  local value, count = state .. ';' .. part.numbers, 1
  for _, other in ipairs(part.others or {}) do
    if other.untilUs > now and count < MOST_RECORDS then
      local otherState, otherUs = part.form.state(other)
      value = value .. '|' .. otherState .. ';' .. other.numbers .. ';' .. whole(other.untilUs)
      lifeUs = math.max(lifeUs, otherUs)
      count = count + 1
    end
  end
  part.mended = false
  if lifeUs == 0 then value, part.others = '', nil end
  if part.blockedUs > 0 then value = value .. '#' .. blockOf(part) end
  if value == '' then return redis.call('DEL', part.key) end
  redis.call('SET', part.key, value, 'PXAT', endMs(math.max(lifeUs, part.blockedUs)))
end
