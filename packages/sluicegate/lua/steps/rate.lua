--- Token bucket and GCRA: the time at which a key's debt is paid, its theoretical arrival time (ITU-T I.371, annex A).
-- Twin of assembly/gcra.ts and assembly/verbs.ts. A debt is in units: a token is `unitsPerToken`, and `unitsPerUs` flow back a microsecond.
--
-- state     "<microsecond> <units beyond it>"; and " ahead" when it owed more than `shallow`
-- numbers   unitsPerToken, unitsPerUs, capacity, shallow (the most that a key owes unless it was penalized or booked ahead)
-- more      of `cancel` the debt that the booking left, its units, the time at which it was made; its bound is the time it was for

local rate = {}
forms.rate = rate

local function deepest(part)
  return math.max(DEEPEST_DEBT_BURSTS * part.capacity, part.shallow + FURTHEST_US * part.unitsPerUs)
end

function rate.numbered(part)
  local unitsPerToken, unitsPerUs, capacity, shallow = string.match(part.numbers, '^(%d+) (%d+) (%d+) (%d+)$')
  part.unitsPerToken, part.unitsPerUs, part.capacity, part.shallow = tonumber(unitsPerToken), tonumber(unitsPerUs), tonumber(capacity), tonumber(shallow)
end

function rate.renewed(part)
  part.debt = 0
end

--- A server's clock may step back: what nobody can owe was written by another clock, and is cut down.
function rate.restored(part, state)
  local us, beyond, ahead = string.match(state, '^(%d+) (%d+)(.*)$')
  local most = ahead == '' and part.shallow or deepest(part)
  part.debt = math.max(0, (us - now) * part.unitsPerUs + beyond)
  if part.debt > most then
    part.mended = true
    part.debt = most
  end
end

--- What was spent under other numbers stays spent, at most the burst.
function rate.carried(part, other)
  local rest = other.debt % other.unitsPerToken
  local tokens = (other.debt - rest) / other.unitsPerToken
  part.debt = part.capacity
  if tokens * part.unitsPerToken >= part.capacity then return end
  part.debt = math.min(part.capacity, tokens * part.unitsPerToken + mulDivUp(part.unitsPerToken, rest, other.unitsPerToken))
end

function rate.state(part)
  local beyond = part.debt % part.unitsPerUs
  local us = (part.debt - beyond) / part.unitsPerUs
  local state = whole(now + us) .. ' ' .. whole(beyond)
  if part.debt > part.shallow then state = state .. ' ahead' end
  return state, part.debt == 0 and 0 or us + 1
end

function rate.amountOf(part, tokens)
  return tokens * part.unitsPerToken
end

function rate.tokensOf(part, amount)
  return amount / part.unitsPerToken
end

local function step(verb, debt, amount, capacity, unitsPerToken, unitsPerUs, bound)
  if verb == 'take' then return debt + amount <= capacity and debt + amount or debt end
  if verb == 'refund' then return math.max(debt - amount, 0) end
  if verb == 'fill' then return math.max(debt, math.min(debt + amount, capacity)) end
  if verb == 'penalize' then return math.max(debt, math.min(debt + amount, DEEPEST_DEBT_BURSTS * capacity)) end
  if verb == 'reserve' then
    if debt + amount > bound then return debt end
    local waitUs = ceilDiv(math.max(debt + amount - capacity, 0), unitsPerUs)
    return math.max(debt, waitUs * unitsPerUs) + amount
  end
  if verb == 'cancel' then
    -- A booking after it that was cancelled leaves up to a microsecond's inflow behind, which is nobody's; one that stands at least a token.
    local rest = bound > capacity and math.min(unitsPerToken, unitsPerUs) - 1 or 0
    return debt <= bound + rest and math.max(math.min(debt, bound) - amount, 0) or debt
  end
  return debt
end

function rate.read(part)
  rate.numbered(part)
  readRecords(part)
  return true
end

function rate.passes(part, amount)
  return part.debt + amount <= part.capacity
end

--- What of a booking comes back: surely not what has flowed back by itself since its time. Before its time all or nothing, and nothing
--- once somebody booked after it.
local function cancelled(part, amount, atUs)
  local left, units, bookedUs = string.match(part.more, '^(%S+) (%S+) (%S+)$')
  left, units, bookedUs = tonumber(left), tonumber(units), tonumber(bookedUs)
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
  if amount <= 0 then return false end
  local debt = step(verb, part.debt, amount, part.capacity, part.unitsPerToken, part.unitsPerUs, bound)
  local changed = debt ~= part.debt
  part.debt = debt
  return changed
end

rate.write = writeRecords

--- Debt, microseconds until `amount` more would pass, microseconds until it is as good as new: of a rate the debt says it all.
function rate.standing(part)
  return part.debt, 0, 0
end

--- Tokens that conform now, and those that will within `horizonUs`, one after another; at most `want`, nothing below `least`. See scripts/lease.lua.
function rate.leased(part, want, least, horizonUs)
  local room = part.capacity - part.debt
  local ready = math.min(math.max(math.floor(room / part.unitsPerToken), 0), want)
  local later = math.floor((room + horizonUs * part.unitsPerUs) / part.unitsPerToken) - ready
  later = math.min(math.max(later, 0), want - ready)
  if ready + later < least then return 0, 0, 0, 0 end
  part.debt = part.debt + (ready + later) * part.unitsPerToken
  return ready, later, 0, 0
end
