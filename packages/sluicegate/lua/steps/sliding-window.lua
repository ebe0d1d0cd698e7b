--- Approximated sliding window: the counts of two windows in a row, the earlier one weighted by how much of it the sliding window still
-- covers, rounded up. Twin of assembly/algorithms/sliding-window.ts; windows are aligned, and one later than now is closed until it begins.
--
-- state     "<number> <previous> <current>"; and " ahead" when it was booked ahead
-- numbers   limit, window in microseconds

local sliding = {}
encodings['sliding-window'] = sliding

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

--- Room at a time from the beginning of the window on, a fraction of a token counted as one.
local function roomFrom(part, us)
  local faded = mulDiv(part.previous, (part.number + 1) * part.windowUs - math.max(us, startUs(part)), part.windowUs)
  return part.limit - part.current - faded
end

local function numberNow(part)
  return (now - now % part.windowUs) / part.windowUs
end

function sliding.numbered(part)
  local limit, windowUs = string.match(part.numbers, '^(%d+) (%d+)$')
  part.limit, part.windowUs = tonumber(limit), tonumber(windowUs)
end

function sliding.renewed(part)
  part.number, part.previous, part.current, part.ahead = numberNow(part), 0, 0, false
end

function sliding.restored(part, state)
  local number, previous, current, ahead = string.match(state, '^(%d+) (%d+) (%d+)(.*)$')
  number = tonumber(number)
  local furthest = part.number + 1
  if ahead ~= '' then furthest = math.max(furthest, (now + FURTHEST_US) / part.windowUs) end
  if number > furthest then
    -- Written under a clock that was ahead of this one: all is spent, in the current window.
    part.mended = true
    part.current = part.limit
    return
  end
  local to = part.number
  part.number, part.previous, part.current, part.ahead = number, tonumber(previous), tonumber(current), ahead ~= ''
  advance(part, to)
end

--- The counts of a key that waits for a window in which nothing is booked any more, full at this moment: no more counts of the window before than
--- passed beside what is known. Nothing for other keys.
local function openedEmpty(other)
  local number = numberNow(other)
  if other.current ~= 0 then return nil end
  if other.number == number + 2 and other.previous == 0 then return 0, other.limit end
  if other.number ~= number + 1 then return nil end
  local left, leftUs = math.max(other.limit - other.previous, 0), (number + 1) * other.windowUs - now
  local rest = other.windowUs % leftUs
  return math.min(left * ((other.windowUs - rest) / leftUs) + mulDivUp(left, rest, leftUs), other.limit), other.previous
end

--- With the same windows a key keeps its window; else its used tokens count as spent in the current window, all of them of a closed key.
function sliding.carried(part, other)
  if other.windowUs == part.windowUs then
    local previous, current
    if other.limit ~= part.limit then previous, current = openedEmpty(other) end
    if previous then part.number = numberNow(part)
    else part.number, previous, current, part.ahead = other.number, other.previous, other.current, other.ahead end
    part.previous, part.current = math.min(previous, part.limit), math.min(current, part.limit)
    return
  end
  local used = isClosed(other) and math.max(other.previous + other.current, other.limit) or usedAt(other, now)
  part.current = math.min(part.limit, used)
end

local function untilNew(part)
  if part.current > 0 then return startUs(part) + 2 * part.windowUs - now end
  if part.previous > 0 then return startUs(part) + part.windowUs - now end
  return math.max(startUs(part) - now, 0)
end

function sliding.state(part)
  local state = whole(part.number) .. ' ' .. whole(part.previous) .. ' ' .. whole(part.current)
  if part.ahead then state = state .. ' ahead' end
  return state, untilNew(part)
end

sliding.whole = limitOf
sliding.amountOf, sliding.tokensOf = sameAmount, sameAmount
sliding.read = readNumbered

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

function sliding.untilFree(part, amount)
  return earliestUs(part, amount) - now
end

function sliding.room(part)
  return isClosed(part) and 0 or part.limit - usedAt(part, now)
end

function sliding.lifeUs(part)
  return 2 * part.windowUs
end

--- In the window of its time.
function sliding.charged(part, tokens, us)
  local number = (us - us % part.windowUs) / part.windowUs
  if number == part.number then part.current = part.current + tokens
  elseif number == part.number - 1 then part.previous = part.previous + tokens end
end

local function reserved(part, amount, bound)
  if amount > part.limit then return false end
  local earliest = earliestUs(part, amount)
  local furthest = math.max(FURTHEST_US, (numberNow(part) + 2) * part.windowUs - 1 - now)
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
  elseif verb == 'penalize' then current = math.max(current, math.min(current + amount, deepestCount(part.limit)))
  elseif verb == 'reserve' then return reserved(part, amount, bound)
  elseif verb == 'giveBack' then
    local beginUs = startUs(part)
    if bound >= beginUs and bound < beginUs + part.windowUs then current = math.max(current - amount, 0)
    elseif bound > now and bound < beginUs and bound >= beginUs - part.windowUs then
      -- Of one that is not due yet others may lie behind: they lie no sooner than before.
      local previous = math.max(part.previous - amount, 0)
      local isLess = previous ~= part.previous
      part.previous, part.returned = previous, 0
      return isLess
    end
  end
  local changed = current ~= part.current
  part.current, part.returned = current, part.current - current
  return changed
end

--- Over the same windows the record of the largest limit has counted all that passed. At each moment at which another record dropped something it
--- was full, to the fraction of a token, so that what both have counted differs by no more than their limits do, then and as it fades.
function sliding.filled(part, amount)
  part.current = part.current + math.max(math.min(amount, roomFrom(part, now)), 0)
end

--- Tokens returned to these windows were counted under all numbers.
function sliding.relieved(part, by)
  if part.windowUs == by.windowUs and part.number == by.number then part.current = math.max(part.current - by.returned, 0) end
end

sliding.write = writeRecords

function sliding.status(part, amount)
  return isClosed(part) and part.limit or usedAt(part, now), earliestUs(part, amount) - now, untilNew(part)
end

--- What would pass now, at most `want`, to be spent in the window of now: until its end, what is spent does not count for more. Nothing below
--- `least`. See scripts/lease.lua.
function sliding.leased(part, want, least)
  local tokens = math.min(math.max(sliding.room(part), 0), want)
  if tokens < least then return 0, 0 end
  part.current = part.current + tokens
  return tokens, startUs(part) + part.windowUs - now
end
