--- Sliding log: every request for as long as it counts, in a stream. Exact. Twin of assembly/sliding-log.ts.
-- A log whose newest request lies ahead of now (the clock stepped back, or tokens are booked ahead) is closed until then. What may be spent
-- until later, as leased tokens may, counts from that later time.
--
-- entries   id "<time in microseconds>-<cost of all requests so far>", and one field: "cost", or "ahead" when it was booked ahead
-- numbers   limit, window in microseconds; the length of a lease, 0 where none is given

local log = {}
forms['sliding-log'] = log

local function entryIn(reply)
  local entry = reply[1]
  if not entry then return nil end
  local us, total = string.match(entry[1], '^(%d+)-(%d+)$')
  return { id = entry[1], us = tonumber(us), total = tonumber(total), cost = tonumber(entry[2][2]), ahead = entry[2][1] == 'ahead' }
end

local function newestUpTo(part, id)
  return entryIn(redis.call('XREVRANGE', part.key, id, '-', 'COUNT', 1))
end

local function oldestFrom(part, us)
  return entryIn(redis.call('XRANGE', part.key, whole(math.max(us, 0)), '+', 'COUNT', 1))
end

--- The first moment at which a request would not be written before the newest.
local function opensUs(part)
  return math.max(now, part.lastUs - part.leaseUs)
end

local function isClosed(part)
  return opensUs(part) > now
end

local function readUsed(part)
  local fromUs = opensUs(part) - part.windowUs + 1
  part.first = part.newest and part.newest.us >= fromUs and oldestFrom(part, fromUs) or nil
  part.used = part.first and part.total - part.first.total + part.first.cost or 0
end

local function readStream(part)
  part.newest = newestUpTo(part, '+')
  part.lastUs = part.newest and part.newest.us or 0
  part.total = part.newest and part.newest.total or 0
end

function log.read(part)
  part.limit, part.windowUs, part.leaseUs = argument(part, 1), argument(part, 2), argument(part, 3) or 0
  readStream(part)
  local furthest = now + part.leaseUs + part.windowUs + (part.newest and part.newest.ahead and FURTHEST_US or 0)
  if part.lastUs > furthest then
    -- Written by a clock that was ahead of this one: all is spent, now.
    part.mended = true
    part.newest = { us = now + part.leaseUs, total = part.limit, cost = part.limit }
    part.lastUs, part.total, part.used, part.first = now + part.leaseUs, part.limit, part.limit, part.newest
  else
    readUsed(part)
  end
  return true
end

function log.passes(part, amount)
  return not isClosed(part) and part.used + amount <= part.limit
end

local function add(part, entry)
  local id = whole(entry.us) .. '-' .. whole(entry.total)
  local oldest = whole(math.max(opensUs(part) - part.windowUs + 1, 0))
  redis.call('XADD', part.key, 'MINID', '=', oldest, id, entry.ahead and 'ahead' or 'cost', whole(entry.cost))
  part.newest, part.lastUs, part.total = entry, entry.us, entry.total
end

local function appended(part, us, cost, ahead)
  if part.newest and part.newest.cost == 0 then
    redis.call('XDEL', part.key, part.newest.id)
    if part.used == 0 then part.first = nil end
  end
  local entry = { us = math.max(us, part.lastUs), total = part.total + cost, cost = cost, ahead = ahead }
  part.used = part.used + cost
  add(part, entry)
  part.first = part.first or entry
  return true
end

--- Takes the newest entry out, and answers with the one before it.
local function takenOut(part, entry)
  redis.call('XDEL', part.key, entry.id)
  local before = newestUpTo(part, '+')
  if before then redis.call('XSETID', part.key, before.id) else redis.call('DEL', part.key) end
  return before
end

--- Without the newest `cost` tokens of those since `sinceUs`. The newest time stays, and what is left of a request counts from there.
local function dropped(part, cost, sinceUs)
  local lastUs, left, entry, rest = part.lastUs, math.min(cost, part.used), part.newest, nil
  if left == 0 then return false end
  local last = entry
  while entry and left > 0 and entry.us >= sinceUs do
    local before = takenOut(part, entry)
    local total = entry.total - entry.cost
    if entry.cost > left then rest = { us = lastUs, total = total + entry.cost - left, cost = entry.cost - left } end
    left = math.max(left - entry.cost, 0)
    entry = before
  end
  if not rest and not (entry and entry.us == lastUs) then rest = { us = lastUs, total = entry and entry.total or 0, cost = 0 } end
  if rest then
    rest.ahead = last.ahead
    add(part, rest)
  end
  readStream(part)
  readUsed(part)
  return true
end

--- How many requests count.
local function liveCount(part)
  if not part.first then return 0 end
  local entries = redis.call('XRANGE', part.key, part.first.id or '-', '+', 'COUNT', part.limit + 1)
  return #entries - (part.newest.cost == 0 and 1 or 0)
end

--- Where the log has no room for another request, or is ahead, the newest gains the tokens.
local function penalized(part, amount)
  local cost = math.min(amount, DEEPEST_DEBT_BURSTS * part.limit - part.used)
  if cost <= 0 then return false end
  if not part.newest or (now + part.leaseUs > part.lastUs and liveCount(part) < part.limit) then return appended(part, now + part.leaseUs, cost) end
  local newest, lastUs, used = part.newest, math.max(now + part.leaseUs, part.lastUs), part.used
  takenOut(part, newest)
  add(part, { us = lastUs, total = newest.total + cost, cost = newest.cost + cost, ahead = newest.ahead })
  readUsed(part)
  return true
end

--- When the requests that have to be over for `amount` are: the first one after which no more than the rest of the limit is left.
local function untilFree(part, amount)
  if part.used + amount <= part.limit or amount > part.limit then return opensUs(part) - now end
  local needed = part.total + amount - part.limit
  local found, low = part.first, part.first.us
  if found.total < needed then
    found = part.newest
    while low < found.us do
      local middle = math.floor((low + found.us) / 2)
      local entry = newestUpTo(part, whole(middle))
      if entry.total >= needed then found = entry else low = middle + 1 end
    end
  end
  return found.us + part.windowUs - now
end

function log.stepped(part, verb, amount, bound)
  if verb == 'take' then return log.passes(part, amount) and appended(part, now + part.leaseUs, amount) end
  if verb == 'reserve' then
    local waitUs = amount <= part.limit and untilFree(part, amount)
    if not waitUs or waitUs > math.min(bound, part.windowUs + FURTHEST_US) then return false end
    part.waitUs = waitUs
    return appended(part, now + waitUs + part.leaseUs, amount, waitUs > 0)
  end
  if verb == 'penalize' then return penalized(part, amount) end
  if verb == 'refund' then return dropped(part, amount, 0) end
  if verb == 'cancel' then return part.lastUs == bound + part.leaseUs and dropped(part, amount, part.lastUs) end
  return false
end

function log.write(part)
  if part.mended then
    redis.call('DEL', part.key)
    add(part, part.newest)
    part.mended = false
  end
  redis.call('PEXPIRE', part.key, lifeMs(part.lastUs + part.windowUs - now))
end

function log.standing(part, amount)
  local newest = part.newest
  if newest and newest.cost == 0 and newest.id then newest = newestUpTo(part, '(' .. newest.id) end
  local untilNew = part.used > 0 and newest.us + part.windowUs - now or opensUs(part) - now
  return isClosed(part) and part.limit or part.used, untilFree(part, amount), untilNew
end

--- What would pass now, at most `want`; it counts from the end of the lease, the latest time at which it may be spent. See scripts/lease.lua.
function log.leased(part, want)
  if isClosed(part) then return 0, 0, 0, 0 end
  local ready = math.min(math.max(part.limit - part.used, 0), want)
  if ready > 0 then appended(part, now + part.leaseUs, ready) end
  return ready, 0, 0, part.leaseUs
end
