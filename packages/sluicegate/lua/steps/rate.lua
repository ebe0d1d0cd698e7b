--- Token bucket and GCRA: the time at which a key's debt is paid, its theoretical arrival time (ITU-T I.371, annex A).
-- Twin of assembly/algorithms/gcra.ts and verbs.ts. A debt is in units: a token is `unitsPerToken`, and `unitsPerUs` flow back a microsecond.
--
-- state     "<microsecond> <units beyond it>", the time at which the debt is paid, less the length of a lease; and " ahead" when the debt is
--           greater than a key owes unless it was penalized or booked ahead
-- numbers   unitsPerToken, unitsPerUs, capacity less `lent`, capacity. `lent` is what flows back during a lease, 0 where none is given
-- more      of `giveBack` the debt that the booking left, its units, the time at which it was made; its bound is the time it was for
--
-- A token that a process takes from here arrives now. A leased token may be spent up to the length L of a lease after it is charged: it arrives L
-- later. So a lease adds its tokens to a debt of at least `lent`, and a take adds its own to the debt as it is. Both leave no more debt than the
-- capacity. Take the tokens that can be spent within [x, y], the last of them spent at y or before it: each
-- arrives at x or later, so together they leave a debt that is paid no sooner than x and all their emission intervals. After the last it is at most
-- the capacity. So they are at most burst + rate * (y - x).

-- Under several numbers (steps/records.lua) leases may be of different lengths, or none, and rates of different speeds. Let F be the most tokens
-- of any numbers, `whole`, R the highest rate, and of a token L the length of its lease, 0 for a take. It is spent up to L after its grant. So the
-- grant leaves all numbers room for F - R * L at most, less the token:
--
--   room' = max(min(room, F - R * L) - amount, min(room, 0, the room left under the numbers that let it pass))
--
-- Then in every interval of length t no more than F + R * t is spent, whatever the numbers. Take the budget S of steps/records.lua, as it is when
-- the first token p of those that are spent within [x, y] is granted, at a; the last, q, at b. S is at most F - R * L before p, as the room of
-- all numbers is, gains at most R * (b - a), and is not less than the room left by q, which is at least 0. So no more were granted than
-- F - R * L + R * (b - a). As p is spent at x or later and q at y or earlier, x <= a + L and y >= b: that is at most
-- F + R * (y - x). Under one kind of numbers alone this is what a lease does by itself: there `F - R * L` is the capacity less `lent`.
-- Where F is not two tokens more than R * L, what is left is two tokens, and R * L + 2 takes the place of F.

local LEAST_TOKENS = 2

local rate = {}
encodings.rate = rate

local function deepest(part)
  return math.max(DEEPEST_DEBT_BURSTS * part.capacity, part.capacity + FURTHEST_US * part.unitsPerUs)
end

function rate.numbered(part)
  local unitsPerToken, unitsPerUs, unlent, capacity = string.match(part.numbers, '^(%d+) (%d+) (%d+) (%d+)$')
  part.unitsPerToken, part.unitsPerUs, part.capacity, part.lent = tonumber(unitsPerToken), tonumber(unitsPerUs), tonumber(capacity), capacity - unlent
end

function rate.renewed(part)
  part.debt, part.paid = 0, -math.huge
end

--- A server's clock may step back: a debt beyond the possible was written under another clock, and is reduced.
function rate.restored(part, state)
  local us, beyond, ahead = string.match(state, '^(%d+) (%d+)(.*)$')
  local most = ahead == '' and part.capacity + part.lent or deepest(part)
  part.paid = (us - now) * part.unitsPerUs + beyond + part.lent
  part.debt = math.max(0, part.paid)
  if part.debt > most then
    part.mended = true
    part.debt = most
  end
end

--- What was spent at a time flows back from then on, or from when the debt before it was paid.
function rate.charged(part, tokens, us)
  local since = part.debt > 0 and part.debt or math.max(part.paid, (us - now) * part.unitsPerUs)
  part.debt = math.max(0, since + tokens * part.unitsPerToken)
  part.paid = since + tokens * part.unitsPerToken
end

--- An amount in the units of other numbers, rounded up.
local function unitsOf(part, amount, unitsPerToken)
  if unitsPerToken == part.unitsPerToken then return amount end
  local rest = amount % unitsPerToken
  return (amount - rest) / unitsPerToken * part.unitsPerToken + mulDivUp(part.unitsPerToken, rest, unitsPerToken)
end

--- How far an amount beyond the capacity of other numbers is beyond that of these, at most.
local function beyondOf(part, other)
  return part.capacity + unitsOf(part, math.max(other.debt - other.capacity, 0), other.unitsPerToken)
end

function rate.whole(part)
  return part.capacity / part.unitsPerToken
end

--- The most tokens and the highest rate among the numbers in use.
local function metBy(part, others)
  local tokens, fastest = rate.whole(part), part
  for _, other in ipairs(others) do
    tokens = math.max(tokens, rate.whole(other))
    if other.unitsPerUs * fastest.unitsPerToken > fastest.unitsPerUs * other.unitsPerToken then fastest = other end
  end
  return tokens, fastest
end

--- Tokens spent under other numbers stay spent, and so do granted tokens that may still be spent: at most the burst, and what is lent beyond it. A
--- penalty, or a booking ahead, counts for no more than a burst. Where these are the fastest numbers of all, their gain on the others counts as
--- spent under all, for as long as tokens lent under the others may be spent: until then no more is refilled than those assumed.
function rate.carried(part, other)
  local debt = unitsOf(part, other.debt, other.unitsPerToken)
  local _, fastest = metBy(other, part.others)
  local us, lent = 0, 0
  for _, each in ipairs(part.others) do
    lent = math.max(lent, unitsOf(part, each.lent, each.unitsPerToken))
    local keptUs = (each.lent + math.min(math.max(each.debt - each.capacity, 0), each.lent)) / each.unitsPerUs
    if each.debt > 0 and each.lent > 0 then us = math.max(us, math.ceil(keptUs)) end
  end
  part.paid = 0
  local gained = part.unitsPerUs * us - unitsOf(part, fastest.unitsPerUs * us, fastest.unitsPerToken)
  part.debt = math.min(debt, beyondOf(part, other), part.capacity + lent)
  if gained <= 0 then return end
  part.debt = part.debt + gained
  for _, each in ipairs(part.others) do each.debt = each.debt + unitsOf(each, gained, part.unitsPerToken) end
end

--- The debt that leaves room for the tokens that may pass before a token is spent at the latest, `us` microseconds from now.
local function debtUntil(part, us, tokens, fastest)
  local whole = tokens * part.unitsPerToken
  local flow = unitsOf(part, fastest.unitsPerUs * us, fastest.unitsPerToken)
  return part.capacity - whole + math.min(flow, math.max(whole - LEAST_TOKENS * part.unitsPerToken, 0))
end

--- Leased tokens arrive when the lease ends, and while they are kept more is refilled under the faster numbers of others.
function rate.lends(part)
  part.debt = math.max(part.debt, part.lent)
  local tokens, fastest = metBy(part, part.others or {})
  if fastest == part then return end
  part.debt = math.max(part.debt, debtUntil(part, part.lent / part.unitsPerUs, tokens, fastest))
end

--- A take is spent at once, and a booking is counted as a lease.
function rate.filled(part, amount, by, verb)
  local tokens, fastest = metBy(by, by.others)
  local lentUs = verb == 'take' and 0 or by.lent / by.unitsPerUs
  local least = debtUntil(part, lentUs, tokens, fastest)
  part.debt = math.min(math.max(part.debt, least) + amount, math.max(part.debt, math.min(beyondOf(part, by), deepest(part))))
end

--- Later bookings under other numbers are not known under these: only debt beyond the capacity, for which there is no room, comes back.
function rate.relieved(part, by)
  local back = unitsOf(part, by.returned or 0, by.unitsPerToken)
  part.debt = math.max(math.min(part.debt, part.capacity), part.debt - back)
end

function rate.state(part)
  local beyond = (part.debt - part.lent) % part.unitsPerUs
  local us = (part.debt - part.lent - beyond) / part.unitsPerUs
  local state = whole(now + us) .. ' ' .. whole(beyond)
  if part.debt > part.capacity + part.lent then state = state .. ' ahead' end
  return state, part.debt == 0 and 0 or us + 1 + part.lent / part.unitsPerUs
end

function rate.amountOf(part, tokens)
  return tokens * part.unitsPerToken
end

function rate.tokensOf(part, amount)
  return amount / part.unitsPerToken
end

local function step(verb, debt, amount, capacity, unitsPerToken, unitsPerUs, bound, least)
  if verb == 'take' then return debt + amount <= capacity and debt + amount or debt end
  if verb == 'refund' then return math.max(debt - amount, least) end
  if verb == 'penalize' then return math.max(debt, math.min(debt + amount, DEEPEST_DEBT_BURSTS * capacity)) end
  if verb == 'reserve' then
    if debt + amount > bound then return debt end
    local waitUs = ceilDiv(math.max(debt + amount - capacity, 0), unitsPerUs)
    return math.max(debt, waitUs * unitsPerUs) + amount
  end
  if verb == 'giveBack' then
    -- A later booking that was cancelled leaves up to a microsecond's refill behind, which belongs to no booking; one that stands leaves at least a token.
    local rest = bound > capacity and math.min(unitsPerToken, unitsPerUs) - 1 or 0
    return debt <= bound + rest and math.max(math.min(debt, bound) - amount, least) or debt
  end
  return debt
end

rate.read = readNumbered

function rate.passes(part, amount)
  return part.debt + amount <= part.capacity
end

function rate.room(part)
  return math.floor((part.capacity - part.debt) / part.unitsPerToken)
end

function rate.untilFree(part, amount)
  return ceilDiv(math.max(part.debt + amount - part.capacity, 0), part.unitsPerUs)
end

function rate.lifeUs(part)
  return ceilDiv(part.capacity + part.lent, part.unitsPerUs)
end

--- The part of a booking that comes back: never what has been refilled since its time. Before its time all or nothing, and nothing
--- once there is a later booking.
local function cancelled(part, amount, atUs)
  local left, units, bookedUs = string.match(part.more, '^(%S+) (%S+) (%S+)$')
  left, units, bookedUs = tonumber(left), tonumber(units), tonumber(bookedUs)
  if atUs > bookedUs and now < atUs then return amount == units and units or 0, left - (now - bookedUs) * part.unitsPerUs end
  return math.min(amount, units - math.max(0, now - atUs) * part.unitsPerUs), part.capacity
end

--- The key after the verb. Returns whether anything changed.
function rate.stepped(part, verb, amount, bound)
  if verb == 'giveBack' then amount, bound = cancelled(part, amount, bound) end
  if verb == 'reserve' then
    if amount > part.capacity then return false end
    bound = math.min(part.capacity + bound * part.unitsPerUs, deepest(part))
  end
  if amount <= 0 then return false end
  local before = part.debt
  -- Tokens that come back leave the debt that keeps room for leased ones.
  local debt = step(verb, before, amount, part.capacity, part.unitsPerToken, part.unitsPerUs, bound, math.min(before, part.lent))
  if debt == before then return false end
  part.debt, part.returned = debt, before - debt
  return true
end

rate.write = writeRecords

--- Debt, microseconds until `amount` more would pass, microseconds until it is full: of a rate the debt determines all three.
function rate.status(part)
  return part.debt, 0, 0
end

--- Tokens that conform now, at most `want`, nothing below `least`. See scripts/lease.lua.
function rate.leased(part, want, least)
  local tokens = math.min(math.max(rate.room(part), 0), want)
  if tokens < least then return 0, 0 end
  part.debt = part.debt + tokens * part.unitsPerToken
  return tokens, 0
end
