--- Fixed window: the count of one window. Twin of assembly/algorithms/fixed-window.ts.
-- A window later than now (the clock stepped back, or tokens are booked ahead) is closed until it begins.
--
-- state     "<begin> <end> <count>", times in microseconds; and " ahead" when it was booked ahead
-- numbers   limit, <windows>: their length in microseconds, or their name in a calendar; then, not in the value, "|" and the bounds of
--           three windows in a row, the second of which is the current one by the caller's clock

local fixed = {}
encodings['fixed-window'] = fixed

--- The window around a time. The caller supplies calendar windows; with a clock that is far off or a window behind, it has to supply them again.
local function windowAround(part, us)
  if part.windowUs > 0 then
    local begin = us - us % part.windowUs
    return begin, begin + part.windowUs
  end
  for i = 1, 3 do
    local begin, finish = part.bounds[i], part.bounds[i + 1]
    if us >= begin and us < finish then return begin, finish end
  end
end

local function isClosed(part)
  return part.begin > now
end

function fixed.numbered(part)
  local limit, windows = string.match(part.numbers, '^(%d+) (.*)$')
  part.limit, part.windows, part.windowUs = tonumber(limit), windows, tonumber(windows) or 0
end

--- In a calendar of other numbers, all windows count as long as the one in the state.
function fixed.renewed(part, asked)
  part.count, part.ahead = 0, false
  if part.windowUs > 0 or part.bounds then part.begin, part.finish = windowAround(part, now)
  elseif asked and asked.windows == part.windows then part.begin, part.finish = windowAround(asked, now)
  elseif asked then part.isUnknown = true end
end

function fixed.restored(part, state)
  local begin, finish, count, ahead = string.match(state, '^(%d+) (%d+) (%d+)(.*)$')
  begin, finish, count = tonumber(begin), tonumber(finish), tonumber(count)
  local lengthUs = finish - begin
  local furthest = part.finish
  if part.isUnknown then
    local windows = math.max(math.floor((now - begin) / lengthUs), 0)
    part.begin, part.finish = begin + windows * lengthUs, finish + windows * lengthUs
    furthest = now + 2 * lengthUs
  end
  if begin > (ahead == '' and furthest or math.max(furthest, now + FURTHEST_US)) then
    -- Written under a clock that was ahead of this one: all is spent, in the current window.
    part.mended = true
    part.count = part.limit
    if part.isUnknown then part.begin, part.finish = now, now + lengthUs end
  elseif finish > now then
    part.count, part.ahead = count, ahead ~= ''
    if begin > now then part.begin, part.finish = begin, finish end
  end
end

--- With the same windows a key keeps its window; else its count moves into the current window.
function fixed.carried(part, other)
  if other.finish <= now then return end
  local count = other.count
  -- A window in which nothing is booked any more: the one before it is full.
  local isFull = other.windows == part.windows and count == 0 and other.limit ~= part.limit and other.begin == part.finish
  -- What a closed key has spent in the current one of other windows is not known: all of it.
  if isFull or (other.windows ~= part.windows and isClosed(other)) then count = math.max(count, other.limit) end
  part.count = math.min(count, part.limit)
  if other.windows == part.windows and not isFull then part.begin, part.finish, part.ahead = other.begin, other.finish, other.ahead end
end

function fixed.state(part)
  local state = whole(part.begin) .. ' ' .. whole(part.finish) .. ' ' .. whole(part.count)
  if part.ahead then state = state .. ' ahead' end
  -- A closed window stays, even with nothing spent in it.
  return state, (part.count > 0 or isClosed(part)) and part.finish - now or 0
end

fixed.whole = limitOf
fixed.amountOf, fixed.tokensOf = sameAmount, sameAmount

--- Removes the bounds of a calendar's windows from the numbers.
local function readBounds(part)
  local numbers, bounds = string.match(part.numbers, '^(.*)|(.*)$')
  if not numbers then return end
  part.numbers, part.bounds = numbers, {}
  for us in string.gmatch(bounds, '%S+') do part.bounds[#part.bounds + 1] = tonumber(us) end
end

function fixed.read(part)
  readBounds(part)
  fixed.numbered(part)
  local begin = windowAround(part, now)
  if not begin or (part.bounds and begin >= part.bounds[3]) then return false end
  readRecords(part)
  return true
end

function fixed.passes(part, amount)
  return not isClosed(part) and part.count + amount <= part.limit
end

local function untilFree(part, amount)
  local fits = part.count + amount <= part.limit
  if isClosed(part) and fits then return part.begin - now end
  return fits and 0 or part.finish - now
end

fixed.untilFree = untilFree

function fixed.room(part)
  return isClosed(part) and 0 or part.limit - part.count
end

function fixed.lifeUs(part)
  return part.finish - part.begin
end

--- What was spent in a window that is over counts no more.
function fixed.charged(part, tokens, us)
  if part.begin and us >= part.begin then part.count = part.count + tokens end
end

local function reserved(part, amount, bound)
  local earliest = now + untilFree(part, amount)
  local begin, finish = windowAround(part, earliest)
  local _, endOfNow = windowAround(part, now)
  local furthest = math.max(FURTHEST_US, endOfNow - now)
  if amount > part.limit or not begin or earliest - now > math.min(bound, furthest) then return false end
  part.waitUs = earliest - now
  part.count = begin == part.begin and part.count + amount or amount
  part.ahead = part.ahead or begin > now
  part.begin, part.finish = begin, finish
  return true
end

function fixed.stepped(part, verb, amount, bound)
  local count = part.count
  if verb == 'take' then
    if fixed.passes(part, amount) then count = count + amount end
  elseif verb == 'refund' then count = math.max(count - amount, 0)
  elseif verb == 'penalize' then count = math.max(count, math.min(count + amount, deepestCount(part.limit)))
  elseif verb == 'reserve' then return reserved(part, amount, bound)
  elseif verb == 'giveBack' then
    if bound >= part.begin and bound < part.finish then count = math.max(count - amount, 0) end
  end
  local changed = count ~= part.count
  part.count, part.returned = count, part.count - count
  return changed
end

--- No lease exceeds the limit of a fixed window.
function fixed.filled(part, amount)
  part.count = math.max(part.count, math.min(part.count + amount, part.limit))
end

--- Tokens returned to these windows were counted under all numbers.
function fixed.relieved(part, by)
  if part.windows == by.windows and part.begin == by.begin then part.count = math.max(part.count - by.returned, 0) end
end

fixed.write = writeRecords

function fixed.status(part, amount)
  local untilNew = part.count == 0 and math.max(part.begin - now, 0) or part.finish - now
  return isClosed(part) and part.limit or part.count, untilFree(part, amount), untilNew
end

--- What is left of the window, at most `want`, to be spent in it; nothing below `least`. See scripts/lease.lua.
function fixed.leased(part, want, least)
  if isClosed(part) then return 0, 0 end
  local tokens = math.min(math.max(part.limit - part.count, 0), want)
  if tokens < least then return 0, 0 end
  part.count = part.count + tokens
  return tokens, part.finish - now
end
