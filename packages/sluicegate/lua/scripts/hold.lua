--- Moves the hold of work whose cost is known afterwards, on all its keys or on none: HoldOperation of src/shared/backend.ts.
--
-- KEYS   for each policy its key; then, where the hold has a record, the key of that; all in one hash slot
-- ARGV   the step; then for each policy its encoding, numbers, and request as in steps/parts.lua
--        step      "<ttl> <hold> <want> <least> <debt> <call> <most> <total> <spent> <count>": the time to live in microseconds; what is held afterwards, -1
--                  for what is left; tokens to grant, and the fewest; 1 where what is spent is charged whatever is free, 2 where a refused piece frees what is held and may come again; the number of the call,
--                  -1 for the next one, or without a record; the most that it may cost, and what it cost in all, each -1 where nothing is said; what it spent; how many such open, or as
--                  many as find room
--        request   "<spent> 0 <end> <held> <granted>" in tokens, with how the hold stood; "<spent>" where it opens, or has a record
-- reply  as in steps/parts.lua, also where nothing is held; then 1 where it was done; what is held that is not granted; what is granted; when it ends; what was
--        charged beyond the policy, with a record in all; with a record what was spent in all, by this call, and of that beyond the policy, else 0; how many opened; and 0, or why nothing was done: 1 there is no
--        such hold, 2 it is closed, 3 a later call was answered, 4 it would cost more than its most
-- record "<call> <closed> <done> <held> <granted> <end> <over> <used> <ttl> <debt> <most>", as the last call left it. It outlives the hold by one ttl

local SLOTS = 8
local UNKNOWN, CLOSED, PASSED, BEYOND = 1, 2, 3, 4
local RECORD = { 'call', 'closed', 'done', 'held', 'granted', 'us', 'over', 'used', 'ttlUs', 'debt', 'most' }

local function numbersIn(text)
  local numbers = {}
  for number in string.gmatch(text, '%S+') do numbers[#numbers + 1] = tonumber(number) end
  return unpack(numbers)
end

local ttlUs, hold, want, least, debt, call, most, total, spent, count = numbersIn(ARGV[1])
local parts = {}
for i = 2, #ARGV, 3 do
  local at = #parts + 1
  parts[at] = partOf(ARGV[i], KEYS[at], ARGV[i + 1], ARGV[i + 2])
end
local recordKey = KEYS[#parts + 1]

--- The hold as the last call left it.
local known = { call = -1, closed = 0, done = 0, held = 0, granted = 0, us = 0, over = 0, used = 0, ttlUs = ttlUs, debt = debt, most = most }
local hasBefore = false

local function readRecord()
  local text = recordKey and redis.call('GET', recordKey)
  if not text then return false end
  local values = { numbersIn(text) }
  -- Redis may be late to delete it.
  if values[6] + values[9] <= now then return false end
  for i, name in ipairs(RECORD) do known[name] = values[i] end
  ttlUs, most = known.ttlUs, known.most
  if hold ~= 0 then debt = known.debt end
  hasBefore = true
  return true
end

local function writeRecord()
  if not recordKey then return end
  local texts = {}
  for i, name in ipairs(RECORD) do texts[i] = known[name] < 0 and '-1' or whole(known[name]) end
  -- What has ended still needs a time from which its record counts.
  local us = known.us > 0 and known.us or now
  texts[6] = whole(us)
  redis.call('SET', recordKey, table.concat(texts, ' '), 'PXAT', endMs(us - now + ttlUs))
end

--- What is there of the hold. One that has ended is free, and what was granted of it has been charged.
local function readOwn(part, spentBy)
  local before = hasBefore and known or part.before
  part.spent, part.own, part.sure = math.min(spentBy, DEEPEST_DEBT_BURSTS * part.encoding.whole(part) + 1), 0, 0
  -- No key owes more.
  part.beyond = spent - part.spent
  if not before then return end
  if before.us <= now then
    part.spent = math.max(part.spent - before.granted, 0)
    return
  end
  part.sure = before.granted
  for _, slot in ipairs(part.slots) do
    if slot.us == before.us then
      part.ownUs, part.ownHeld, part.ownGranted = slot.us, math.min(slot.held, before.held), math.min(slot.granted, before.granted)
      part.own = part.ownHeld + part.ownGranted
    end
  end
end

--- What opens: of several that are alike as many as find room, but one at least.
local function together()
  if count == 1 then return end
  for _, part in ipairs(parts) do count = math.min(count, math.floor((part.encoding.room(part) - part.held) / hold)) end
  count = math.max(count, 1)
  hold, want, least = count * hold, count * want, count * least
end

--- What is held afterwards, and granted of it; nil where there is no room.
local function planned()
  local kept, room = nil, math.huge
  -- Also work that may go into debt begins only where there is room.
  local mustFit = debt ~= 1 or hold > 0
  for _, part in ipairs(parts) do
    local left = hold >= 0 and hold or math.max(part.own - part.spent, 0)
    kept = math.min(kept or left, left)
  end
  for _, part in ipairs(parts) do
    -- Without what others hold.
    part.free = math.max(part.own, part.sure, part.encoding.room(part) - part.held + part.own)
    part.lacks = math.max(part.spent + kept - part.own, 1)
    if mustFit and (part.blockedUs > 0 or part.spent + kept > part.free) then return nil end
    room = math.min(room, math.max(part.free - part.spent - kept, 0))
  end
  local granted = math.min(want, kept + room)
  if granted < least then
    for _, part in ipairs(parts) do part.lacks = math.max(part.spent + least - part.own, 1) end
    return nil
  end
  return math.max(kept, granted), granted
end

local function charged(part)
  local amount = part.encoding.amountOf(part, part.spent)
  if amount == 0 then return end
  local verb = part.encoding.passes(part, amount) and 'take' or 'penalize'
  if part.encoding.stepped(part, verb, amount, 0) then countElsewhere(part, verb, amount) end
end

local function slotAfter(us)
  local widthUs = 2 ^ math.floor(math.log(math.max(SLOTS, ttlUs) / SLOTS) / math.log(2))
  while 2 * widthUs * SLOTS <= ttlUs do widthUs = 2 * widthUs end
  while widthUs > 1 and widthUs * SLOTS > ttlUs do widthUs = widthUs / 2 end
  return ceilDiv(us + ttlUs, widthUs) * widthUs
end

local function moved(kept, granted)
  known.us, known.held, known.granted = kept > 0 and slotAfter(now) or 0, kept - granted, granted
  local over = 0
  for _, part in ipairs(parts) do
    over = math.max(over, part.spent + part.beyond - part.free)
    if part.own > 0 then moveHeld(part, part.ownUs, -part.ownHeld, -part.ownGranted) end
    moveHeld(part, known.us, known.held, known.granted)
    charged(part)
    -- A log writes what is held with its newest request.
    part.mended = true
    part.encoding.write(part)
  end
  known.over = (recordKey and known.over or 0) + over
  return over
end

--- The piece waits: what is held is free meanwhile.
local function freed()
  for _, part in ipairs(parts) do
    part.lacks = part.spent
    if part.own > 0 then
      moveHeld(part, part.ownUs, -part.ownHeld, -part.ownGranted)
      part.mended = true
    end
  end
  known.us, known.held, known.granted = now, 0, 0
end

local fault = 0
for _, part in ipairs(parts) do
  local request = part.more
  if not part.encoding.read(part) then return redis.error_reply('WINDOW ' .. whole(now)) end
  local us, held, granted = string.match(request, '^(%d+) (%d+) (%d+)$')
  if us then part.before = { us = tonumber(us), held = tonumber(held), granted = tonumber(granted) } end
end
local isRecorded = readRecord()
-- A close without a number is repeated as it was.
if recordKey and call < 0 and isRecorded then call = known.closed == 1 and hold == 0 and known.call or known.call + 1 end
local isAgain = isRecorded and call == known.call
if recordKey and call ~= 0 and not isRecorded then fault = UNKNOWN
elseif isRecorded and not isAgain and known.closed == 1 then fault = CLOSED
elseif isRecorded and call < known.call then fault = PASSED end

local isDone, over = isAgain and known.done == 1, 0
if fault == 0 and not isAgain then
  if total >= 0 then spent = math.max(total - known.used, 0) end
  for _, part in ipairs(parts) do readOwn(part, total >= 0 and spent or part.amount) end
  together()
  local kept, granted
  local isBeyond = recordKey and most >= 0 and total < 0 and known.used + spent > most
  if isBeyond then fault = BEYOND else kept, granted = planned() end
  isDone = kept ~= nil
  if isDone then
    known.used, known.closed = known.used + spent, hold == 0 and 1 or 0
    over = moved(kept, granted)
  end
  local isLater = not isDone and isRecorded and fault == 0 and debt == 2
  if isLater then freed() else known.call, known.done = call, isDone and 1 or 0 end
  -- Of work that may not begin nothing is kept.
  if isDone or isRecorded then writeRecord() end
end

local reply = { now }
for i, part in ipairs(parts) do
  if not isDone and part.mended then part.encoding.write(part) end
  local lacks = part.encoding.amountOf(part, part.lacks or 1)
  replied(reply, i, part, isDone, isDone and part.encoding.amountOf(part, 1) or lacks)
  if not isDone and part.held == 0 then reply[6 * i - 1] = part.encoding.untilFree(part, lacks) end
end
repliedHeld(reply, parts)
for _, value in ipairs({ isDone and 1 or 0, known.held, known.granted, known.us, known.over, recordKey and known.used or 0, recordKey and isDone and not isAgain and spent or 0, recordKey and over or 0, count, fault }) do
  reply[#reply + 1] = told(value)
end
return reply
