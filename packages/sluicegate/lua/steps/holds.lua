--- What is held of a key for work whose cost is known afterwards: sums of tokens by the time at which their holds end. Twin of src/holds/.
-- They count beside what is spent wherever something is to pass. A granted token may be spent by a process until its hold ends: when nobody
-- reported it by then it is charged, as of that time.
--
-- holds     "<end> <held> <granted>" joined by ",", ascending, in microseconds and tokens
--
-- An encoding with holds has
-- room      tokens that pass now
-- charged   the key after tokens were spent at an earlier time
-- untilFree microseconds until an amount passes, bans and holds aside
-- lifeUs    the longest time for which spent tokens count

--- Of the longest time to live: a hold that ends later was written under a clock that was ahead of this one, and ends now.
local LONGEST_HOLD_US = 200000000000

local function readHolds(part, text)
  part.slots, part.held = {}, 0
  for ends, held, granted in string.gmatch(text or '', '(%d+) (%d+) (%d+)') do
    local slot = { us = tonumber(ends), held = tonumber(held), granted = tonumber(granted) }
    if slot.us > now and slot.us <= now + LONGEST_HOLD_US then
      part.slots[#part.slots + 1] = slot
      part.held = part.held + slot.held + slot.granted
    else
      part.mended = true
      if slot.granted > 0 then
        part.lapsed = part.lapsed or {}
        part.lapsed[#part.lapsed + 1] = slot
      end
    end
  end
end

--- Charges what was granted and not reported in time, under all numbers.
local function chargeLapsed(part)
  for _, slot in ipairs(part.lapsed or {}) do
    local us = math.min(slot.us, now)
    part.encoding.charged(part, slot.granted, us)
    for _, other in ipairs(part.others or {}) do part.encoding.charged(other, slot.granted, us) end
  end
  part.lapsed = nil
end

--- Adds to the slot that ends at a time, or takes from it; what is not there cannot be taken.
local function moveHeld(part, us, held, granted)
  if held == 0 and granted == 0 then return end
  local at = 1
  while part.slots[at] and part.slots[at].us < us do at = at + 1 end
  local slot = part.slots[at]
  if not slot or slot.us ~= us then
    slot = { us = us, held = 0, granted = 0 }
    table.insert(part.slots, at, slot)
  end
  local before = slot.held + slot.granted
  slot.held, slot.granted = math.max(slot.held + held, 0), math.max(slot.granted + granted, 0)
  part.held = part.held + slot.held + slot.granted - before
  if slot.held + slot.granted == 0 then table.remove(part.slots, at) end
end

--- The holds as they stand in a value, and the microseconds for which they matter.
local function holdsOf(part)
  local texts, lifeUs = {}, 0
  for i, slot in ipairs(part.slots) do
    texts[i] = whole(slot.us) .. ' ' .. whole(slot.held) .. ' ' .. whole(slot.granted)
    lifeUs = slot.us - now + (slot.granted > 0 and part.encoding.lifeUs(part) or 0)
  end
  return table.concat(texts, ','), lifeUs
end

--- Whether an amount passes beside what is held.
local function passesBeside(part, amount)
  if part.held == 0 then return part.encoding.passes(part, amount) end
  return part.encoding.passes(part, amount + part.encoding.amountOf(part, part.held))
end

--- Until an amount passes beside others, whatever of it can never be there at once.
local function untilFreeBeside(part, amount)
  if amount > part.encoding.amountOf(part, part.encoding.whole(part)) then return math.huge end
  return part.encoding.untilFree(part, amount)
end

--- What an encoding says of its status, with what is held: the soonest time at which enough holds have ended by themselves, and the rest fits.
local function statusBeside(part, amount)
  local encoding = part.encoding
  local debt, untilFree, untilNew = encoding.status(part, amount)
  if part.held == 0 then return debt, untilFree, untilNew end
  local held = part.held
  local soonest = untilFreeBeside(part, amount + encoding.amountOf(part, held))
  for _, slot in ipairs(part.slots) do
    local us = slot.us - now
    if us >= soonest then break end
    held = held - slot.held
    soonest = math.min(soonest, math.max(us, untilFreeBeside(part, amount + encoding.amountOf(part, held))))
  end
  local lastUs = part.slots[#part.slots].us - now
  return debt, soonest < math.huge and soonest or lastUs, math.max(untilNew, lastUs)
end
