--- Fixed window: what was spent in one window. Twin of assembly/fixed-window.ts.
-- A window later than now (the clock stepped back, or tokens are booked ahead) is closed until it begins.
--
-- value     "<begin> <end> <count> <limit> <windows>", times in microseconds; and " ahead" when it was booked ahead
-- numbers   limit; window in microseconds, of a calendar 0; <windows>, what they are called; of a calendar the bounds of three windows in a
--           row, the second of which is that of now by the caller's clock

local fixed = {}
forms['fixed-window'] = fixed

--- The window around a time. Of a calendar the caller says which there are, and is asked again when its clock is far off.
local function windowAround(part, us)
  if part.windowUs > 0 then
    local begin = us - us % part.windowUs
    return begin, begin + part.windowUs
  end
  for i = 4, 6 do
    local begin, finish = argument(part, i), argument(part, i + 1)
    if us >= begin and us < finish then return begin, finish end
  end
end

local function isClosed(part)
  return part.begin > now
end

--- The state in a value, as the policy of now sees it.
local function readValue(part, value)
  local begin, finish, count, limit, windows, ahead = string.match(value, '^(%d+) (%d+) (%d+) (%d+) (%S+)(.*)$')
  begin, finish, count = tonumber(begin), tonumber(finish), tonumber(count)
  if tonumber(limit) ~= part.limit then
    part.mended = true
    count = math.min(count, part.limit)
  end
  if windows ~= part.windows then
    part.mended = true
    if finish > now then part.count = math.min(count, part.limit) end
  elseif begin > math.max(part.finish, ahead == '' and 0 or now + FURTHEST_US) then
    -- Written by a clock that was ahead of this one: all is spent, in the window of now.
    part.mended = true
    part.count = part.limit
  elseif begin >= part.begin then
    part.begin, part.finish, part.count, part.ahead = begin, finish, count, ahead ~= ''
  end
end

function fixed.read(part, value)
  part.limit, part.windowUs, part.windows = argument(part, 1), argument(part, 2), text(part, 3)
  part.begin, part.finish = windowAround(part, now)
  part.count = 0
  if not part.begin then return false end
  if value then readValue(part, value) end
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
  elseif verb == 'penalize' then count = math.max(count, math.min(count + amount, DEEPEST_DEBT_BURSTS * part.limit))
  elseif verb == 'reserve' then return reserved(part, amount, bound)
  elseif verb == 'cancel' then
    if bound >= part.begin and bound < part.finish then count = math.max(count - amount, 0) end
  end
  local changed = count ~= part.count
  part.count = count
  return changed
end

--- Also with nothing spent in it a window that is closed stays.
function fixed.write(part)
  if part.count == 0 and not isClosed(part) then return redis.call('DEL', part.key) end
  local value = string.format('%.0f %.0f %.0f %.0f %s', part.begin, part.finish, part.count, part.limit, part.windows)
  if part.ahead then value = value .. ' ahead' end
  redis.call('SET', part.key, value, 'PX', lifeMs(part.finish - now))
end

function fixed.standing(part, amount)
  local untilNew = part.count == 0 and math.max(part.begin - now, 0) or part.finish - now
  return isClosed(part) and part.limit or part.count, untilFree(part, amount), untilNew
end

--- What is left of the window, at most `want`, to be spent in it. See scripts/lease.lua.
function fixed.leased(part, want)
  if isClosed(part) then return 0, 0, 0, 0 end
  local ready = math.min(math.max(part.limit - part.count, 0), want)
  part.count = part.count + ready
  return ready, 0, 0, part.finish - now
end
