--- Token bucket and GCRA: the time at which a key's debt is paid, its theoretical arrival time (ITU-T I.371, annex A).
-- Twin of assembly/gcra.ts and assembly/verbs.ts. A debt is in units: a token is `unitsPerToken`, and `unitsPerUs` flow back a microsecond.
--
-- value     "<microsecond> <units beyond it> <unitsPerToken> <unitsPerUs>"; and " ahead" when it owed more than `shallow`
-- numbers   unitsPerToken, unitsPerUs, capacity, shallow (the most that a key owes unless it was penalized or booked ahead)
--           cancel: the debt that the booking left, its units, the time at which it was made; its bound is the time it was for

local function deepest(part)
  return math.max(DEEPEST_DEBT_BURSTS * part.capacity, part.shallow + FURTHEST_US * part.unitsPerUs)
end

--- What was spent under other numbers stays spent, at most the burst.
local function carried(debt, unitsPerToken, part)
  local rest = debt % unitsPerToken
  local tokens = (debt - rest) / unitsPerToken
  if tokens * part.unitsPerToken >= part.capacity then return part.capacity end
  return math.min(part.capacity, tokens * part.unitsPerToken + mulDivUp(part.unitsPerToken, rest, unitsPerToken))
end

--- The debt in a value. A server's clock may step back: what nobody can owe was written by another clock, and is cut down.
local function debtIn(value, part)
  local us, beyond, unitsPerToken, unitsPerUs, ahead = string.match(value, '^(%d+) (%d+) (%d+) (%d+)(.*)$')
  unitsPerToken, unitsPerUs = tonumber(unitsPerToken), tonumber(unitsPerUs)
  local debt = math.max(0, (us - now) * unitsPerUs + beyond)
  if unitsPerToken ~= part.unitsPerToken or unitsPerUs ~= part.unitsPerUs then
    part.mended = true
    return carried(debt, unitsPerToken, part)
  end
  local most = ahead == '' and part.shallow or deepest(part)
  if debt <= most then return debt end
  part.mended = true
  return most
end

local function step(verb, debt, amount, capacity, unitsPerUs, bound)
  if verb == 'take' then return debt + amount <= capacity and debt + amount or debt end
  if verb == 'refund' then return math.max(debt - amount, 0) end
  if verb == 'penalize' then return math.max(debt, math.min(debt + amount, DEEPEST_DEBT_BURSTS * capacity)) end
  if verb == 'reserve' then
    if debt + amount > bound then return debt end
    local waitUs = ceilDiv(math.max(debt + amount - capacity, 0), unitsPerUs)
    return math.max(debt, waitUs * unitsPerUs) + amount
  end
  if verb == 'cancel' then return debt <= bound and math.max(debt - amount, 0) or debt end
  return verb == 'reset' and 0 or debt
end

local rate = {}
forms.rate = rate

function rate.read(part, value)
  part.unitsPerToken, part.unitsPerUs, part.capacity, part.shallow = argument(part, 1), argument(part, 2), argument(part, 3), argument(part, 4)
  part.debt = value and debtIn(value, part) or 0
  return true
end

function rate.passes(part, amount)
  return part.debt + amount <= part.capacity
end

--- What of a booking comes back: surely not what has flowed back by itself since its time. Before its time all or nothing, and nothing
--- once somebody booked after it.
local function cancelled(part, amount, atUs)
  local left, units, bookedUs = argument(part, 5), argument(part, 6), argument(part, 7)
  if atUs > bookedUs and now < atUs then return amount == units and units or 0, left - (now - bookedUs) * part.unitsPerUs end
  return math.min(amount, units - math.max(0, now - atUs) * part.unitsPerUs), part.capacity
end

--- The key after the verb. Answers whether anything changed.
function rate.stepped(part, verb, amount, bound)
  if verb == 'cancel' then amount, bound = cancelled(part, amount, bound) end
  if verb == 'reserve' then
    if amount > part.capacity then return false end
    bound = math.min(part.capacity + bound * part.unitsPerUs, deepest(part))
  end
  if amount <= 0 and verb ~= 'reset' then return false end
  local debt = step(verb, part.debt, amount, part.capacity, part.unitsPerUs, bound)
  local changed = debt ~= part.debt
  part.debt = debt
  return changed
end

function rate.write(part)
  local debt = part.debt
  if debt == 0 then return redis.call('DEL', part.key) end
  local beyond = debt % part.unitsPerUs
  local us = (debt - beyond) / part.unitsPerUs
  local value = string.format('%.0f %.0f %.0f %.0f', now + us, beyond, part.unitsPerToken, part.unitsPerUs)
  if debt > part.shallow then value = value .. ' ahead' end
  redis.call('SET', part.key, value, 'PX', lifeMs(us + 1))
end

--- Debt, microseconds until `amount` more would pass, microseconds until it is as good as new: of a rate the debt says it all.
function rate.standing(part)
  return part.debt, 0, 0
end

--- Tokens that conform now, and those that will within `horizonUs`, one after another; at most `want`. See scripts/lease.lua.
function rate.leased(part, want, horizonUs)
  local room = part.capacity - part.debt
  local ready = math.min(math.max(math.floor(room / part.unitsPerToken), 0), want)
  local later = math.floor((room + horizonUs * part.unitsPerUs) / part.unitsPerToken) - ready
  later = math.min(math.max(later, 0), want - ready)
  part.debt = part.debt + (ready + later) * part.unitsPerToken
  return ready, later, 0, 0
end
