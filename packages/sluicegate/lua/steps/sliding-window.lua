--- Approximated sliding window: the counts of two windows in a row, the earlier one weighted by how much of it the sliding window still
-- covers, rounded up. Twin of assembly/sliding-window.ts; windows are aligned, and one later than now is closed until it begins.
--
-- value     "<number> <previous> <current> <window in microseconds> <limit>"; and " ahead" when it was booked ahead
-- numbers   limit, window in microseconds

local sliding = {}
forms['sliding-window'] = sliding

local function startUs(part)
  return part.number * part.windowUs
end

local function isClosed(part)
  return startUs(part) > now
end

--- Moves on to window `to`, unless the key is there or beyond.
local function advance(part, to)
  if part.number >= to then return end
  part.previous = part.number == to - 1 and part.current or 0
  part.current = 0
  part.number = to
end

local function usedAt(part, us)
  if part.previous == 0 then return part.current end
  return part.current + mulDivUp(part.previous, (part.number + 1) * part.windowUs - us, part.windowUs)
end

local function readValue(part, value, number)
  local slot, previous, current, windowUs, limit, ahead = string.match(value, '^(%d+) (%d+) (%d+) (%d+) (%d+)(.*)$')
  slot, previous, current, windowUs = tonumber(slot), tonumber(previous), tonumber(current), tonumber(windowUs)
  if windowUs ~= part.windowUs then
    -- What it had used counts as spent in the window of now.
    local was = { number = slot, previous = previous, current = current, windowUs = windowUs }
    advance(was, (now - now % windowUs) / windowUs)
    part.mended = true
    part.current = math.min(part.limit, isClosed(was) and was.previous + was.current or usedAt(was, now))
    return
  end
  if tonumber(limit) ~= part.limit then
    part.mended = true
    previous, current = math.min(previous, part.limit), math.min(current, part.limit)
  end
  local furthest = ahead == '' and number + 1 or math.max(number + 1, (now + FURTHEST_US) / windowUs)
  if slot > furthest then
    -- Written by a clock that was ahead of this one: all is spent, in the window of now.
    part.mended = true
    part.current = part.limit
    return
  end
  part.number, part.previous, part.current, part.ahead = slot, previous, current, ahead ~= ''
  advance(part, number)
end

function sliding.read(part, value)
  part.limit, part.windowUs = argument(part, 1), argument(part, 2)
  part.number = (now - now % part.windowUs) / part.windowUs
  part.previous, part.current = 0, 0
  if value then readValue(part, value, part.number) end
  return true
end

function sliding.passes(part, amount)
  return not isClosed(part) and usedAt(part, now) + amount <= part.limit
end

--- The first time from `fromUs` on at which no more than `room` of a previous count is left; `endUs` when not before it.
local function within(fading, room, fromUs, endUs, windowUs)
  if room < 0 then return endUs end
  if fading <= room then return fromUs end
  return math.max(fromUs, endUs - mulDiv(windowUs, room, fading))
end

--- When `amount` more would pass: not before the window of the key has begun.
local function earliestUs(part, amount)
  local fromUs = math.max(now, startUs(part))
  local endUs = startUs(part) + part.windowUs
  local here = within(part.previous, part.limit - part.current - amount, fromUs, endUs, part.windowUs)
  if here < endUs then return here end
  return within(part.current, part.limit - amount, endUs, endUs + part.windowUs, part.windowUs)
end

local function reserved(part, amount, bound)
  if amount > part.limit then return false end
  local earliest = earliestUs(part, amount)
  local number = (now - now % part.windowUs) / part.windowUs
  local furthest = math.max(FURTHEST_US, (number + 2) * part.windowUs - 1 - now)
  if earliest - now > math.min(bound, furthest) then return false end
  part.waitUs = earliest - now
  advance(part, (earliest - earliest % part.windowUs) / part.windowUs)
  part.ahead = part.ahead or isClosed(part)
  part.current = part.current + amount
  return true
end

function sliding.stepped(part, verb, amount, bound)
  local current = part.current
  if verb == 'take' then
    if sliding.passes(part, amount) then current = current + amount end
  elseif verb == 'refund' then current = math.max(current - amount, 0)
  elseif verb == 'penalize' then current = math.max(current, math.min(current + amount, DEEPEST_DEBT_BURSTS * part.limit))
  elseif verb == 'reserve' then return reserved(part, amount, bound)
  elseif verb == 'cancel' then
    if bound >= startUs(part) and bound < startUs(part) + part.windowUs then current = math.max(current - amount, 0) end
  end
  local changed = current ~= part.current
  part.current = current
  return changed
end

function sliding.write(part)
  if part.current == 0 and part.previous == 0 and not isClosed(part) then return redis.call('DEL', part.key) end
  local value =
    string.format('%.0f %.0f %.0f %.0f %.0f', part.number, part.previous, part.current, part.windowUs, part.limit)
  if part.ahead then value = value .. ' ahead' end
  redis.call('SET', part.key, value, 'PX', lifeMs((part.number + 2) * part.windowUs - now))
end

local function untilNew(part)
  if part.current > 0 then return startUs(part) + 2 * part.windowUs - now end
  if part.previous > 0 then return startUs(part) + part.windowUs - now end
  return math.max(startUs(part) - now, 0)
end

function sliding.standing(part, amount)
  return isClosed(part) and part.limit or usedAt(part, now), earliestUs(part, amount) - now, untilNew(part)
end

--- What would pass now, and what will within `horizonUs`, all of it at the time at which the last does; at most `want`, to be spent in the
--- window of now: until its end, what is spent does not count for more. See scripts/lease.lua.
function sliding.leased(part, want, horizonUs)
  if isClosed(part) then return 0, 0, 0, 0 end
  local endUs = startUs(part) + part.windowUs
  local ready = math.min(math.max(part.limit - usedAt(part, now), 0), want)
  local later = math.min(math.max(part.limit - usedAt(part, math.min(now + horizonUs, endUs - 1)), 0), want) - ready
  part.current = part.current + ready + later
  return ready, later, earliestUs(part, 0) - now, endUs - now
end
