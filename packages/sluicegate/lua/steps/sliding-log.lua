--- Sliding log: every request for as long as it counts, in a stream. Exact. Twin of assembly/algorithms/sliding-log.ts.
-- A log whose newest request lies ahead of now (the clock stepped back, or tokens are booked ahead) is closed until then. Tokens that may be spent
-- later, such as leased ones, count from that later time.
--
-- entries   id "<time in microseconds>-<sequence>"; the newest id is the highest of all time; one field, named
--           "<window in microseconds>:<limit>:<ahead>:<kept>:<block>:<holds>", the numbers under which it was written, "ahead" when it was booked
--           ahead, "closed" when until then nothing passes under any lease, the other numbers that need the entries, and the ban of the key and
--           its holds, as of the newest entry; its value is "<cost> <cost of all requests so far>". An entry of cost 0 serves where there is no
--           other: for the newest time, or at 0 for a ban or holds
-- kept      "" or "<window> <limit> <until>": while other numbers are in use, as in steps/records.lua, entries stay as long as these need them
-- numbers   limit, window in microseconds; the length of a lease, 0 where none is given

local log = {}
encodings['sliding-log'] = log

local function keptIn(kept)
  local windowUs, limit, untilUs = string.match(kept, '^(%d+) (%d+) (%d+)$')
  if not windowUs then return nil end
  return { windowUs = tonumber(windowUs), limit = tonumber(limit), untilUs = tonumber(untilUs) }
end

local function entryIn(reply)
  local entry = reply[1]
  if not entry then return nil end
  local us, sequence = string.match(entry[1], '^(%d+)-(%d+)$')
  local cost, total = string.match(entry[2][2], '^(%d+) (%d+)$')
  return { id = entry[1], us = tonumber(us), sequence = tonumber(sequence), cost = tonumber(cost), total = tonumber(total), field = entry[2][1] }
end

local function newestUpTo(part, id)
  return entryIn(redis.call('XREVRANGE', part.key, id, '-', 'COUNT', 1))
end

--- The first moment at which a request would not be written before the newest.
local function opensUs(part)
  return math.max(now, part.isShut and part.lastUs or part.lastUs - part.leaseUs)
end

local function isClosed(part)
  return opensUs(part) > now
end

local function longestUs(part)
  return math.max(part.windowUs, part.kept and part.kept.windowUs or 0)
end

--- Older entries no longer count under any numbers: others may lease for longer, and the log is open to them sooner.
local function oldestUs(part)
  return math.max(math.max(now, part.lastUs - LONGEST_LEASE_US) - longestUs(part) + 1, part.keptSinceUs, 0)
end

--- The first time of which entries still count.
local function sinceUs(part)
  return math.max(opensUs(part) - part.windowUs + 1, part.keptSinceUs)
end

local function readUsed(part)
  local fromUs = sinceUs(part)
  local isUsed = part.newest and part.newest.us >= fromUs
  part.first = isUsed and entryIn(redis.call('XRANGE', part.key, whole(math.max(fromUs, 0)), '+', 'COUNT', 1)) or nil
  part.used = part.first and part.total - part.first.total + part.first.cost or 0
end

--- The numbers of others that are in use beside those of this part: of several the longer window and the larger limit.
local function readKept(part, windowUs, limit, kept)
  kept = keptIn(kept)
  if kept and kept.untilUs <= now then kept = nil end
  part.keptSinceUs = 0
  if windowUs ~= part.windowUs or limit ~= part.limit then
    -- Requests that had expired under the numbers of before do not return.
    local keptUs = math.max(windowUs, kept and kept.windowUs or 0)
    part.mended = true
    -- A log that is booked ahead is read as of its newest, and has to be closed to leases until then, too.
    part.isShut = part.isShut or part.leaseUs == 0 and part.ahead and part.lastUs > now
    part.keptSinceUs = math.max(now, part.isShut and part.lastUs or part.lastUs - LONGEST_LEASE_US) - keptUs + 1
    kept = {
      windowUs = keptUs,
      limit = math.max(limit, kept and kept.limit or 0),
      untilUs = math.max(now + math.max(IN_USE_US, windowUs), kept and kept.untilUs or 0),
    }
  end
  part.kept = kept
end

--- The log as one with no more than these tokens, spent now.
local function spentNow(part, spent)
  part.mended, part.ahead, part.isShut, part.keptSinceUs = true, false, false, 0
  part.newest = { us = now + part.leaseUs, total = spent, cost = spent }
  part.lastUs, part.total, part.sequence, part.used, part.first = now + part.leaseUs, spent, 0, spent, part.newest
end

--- Whether a log under other numbers, by which more may pass now or requests count for longer, waits for a time in which nothing is booked any more.
--- What had expired by then may be gone. Where a lease came back, all that still counts is there.
local function isEmptyAhead(part, windowUs, limit)
  if part.limit <= limit and part.windowUs == windowUs then return false end
  if not part.ahead and part.lastUs <= now + LONGEST_LEASE_US then return false end
  if part.newest.cost > 0 or not part.newest.id or not isClosed(part) then return false end
  local before = newestUpTo(part, '(' .. part.newest.id)
  return not before or before.us <= now
end

function log.read(part)
  local limit, windowUs, leaseUs = string.match(part.numbers, '^(%d+) (%d+) (%d+)$')
  part.limit, part.windowUs, part.leaseUs = tonumber(limit), tonumber(windowUs), tonumber(leaseUs)
  local newest = newestUpTo(part, '+')
  part.newest, part.keptSinceUs = newest, 0
  part.lastUs, part.total, part.sequence = newest and newest.us or 0, newest and newest.total or 0, newest and newest.sequence or 0
  if not newest then
    readBlock(part)
    readHolds(part)
    readUsed(part)
    return true
  end
  local itsWindowUs, itsLimit, ahead, kept, endUs, lengthUs, holds = string.match(newest.field, '^(%d+):(%d+):(%a*):([^:]*):(%d*) ?(%d*):(.*)$')
  readBlock(part, endUs, lengthUs)
  readHolds(part, holds)
  part.ahead, part.isShut = ahead ~= '', ahead == 'closed' and part.lastUs > now
  readKept(part, tonumber(itsWindowUs), tonumber(itsLimit), kept)
  if part.lastUs > now + part.leaseUs + longestUs(part) + (part.ahead and FURTHEST_US or 0) then
    -- Written under a clock that was ahead of this one: all is spent, now.
    spentNow(part, math.max(part.limit, part.kept and part.kept.limit or 0))
  elseif isEmptyAhead(part, tonumber(itsWindowUs), tonumber(itsLimit)) then
    spentNow(part, part.kept.limit)
  else
    readUsed(part)
  end
  chargeLapsed(part)
  return true
end

log.whole, log.amountOf = limitOf, sameAmount

function log.passes(part, amount)
  return not isClosed(part) and part.used + amount <= part.limit
end

--- Appends an entry of this time or later.
local function add(part, us, cost, total, ahead)
  local kept = ''
  if part.kept then kept = whole(part.kept.windowUs) .. ' ' .. whole(part.kept.limit) .. ' ' .. whole(part.kept.untilUs) end
  local block = part.blockedUs > 0 and blockOf(part) or ''
  local field = whole(part.windowUs) .. ':' .. whole(part.limit) .. ':' .. (part.isShut and 'closed' or ahead and 'ahead' or '') .. ':' .. kept .. ':' .. block .. ':' .. holdsOf(part)
  part.sequence = us > part.lastUs and 0 or part.sequence + 1
  local id = whole(us) .. '-' .. whole(part.sequence)
  -- An entry for a ban alone is older than all others.
  redis.call('XADD', part.key, 'MINID', '=', whole(math.min(oldestUs(part), us)), id, field, whole(cost) .. ' ' .. whole(total))
  -- No decision reads more entries than the largest limit.
  if part.kept then redis.call('XTRIM', part.key, 'MAXLEN', '=', whole(math.max(part.limit, part.kept.limit) + 2)) end
  part.newest = { id = id, us = us, cost = cost, total = total, field = field, sequence = part.sequence }
  part.lastUs, part.total, part.ahead = us, total, ahead
end

--- Takes an entry out. Another has to be added in its place, so that the newest is the highest that there was.
local function takeOut(part, entry)
  redis.call('XDEL', part.key, entry.id)
end

local function appended(part, us, cost, ahead)
  if part.newest and part.newest.cost == 0 then
    takeOut(part, part.newest)
    if part.used == 0 then part.first = nil end
  end
  part.used = part.used + cost
  add(part, math.max(us, part.lastUs), cost, part.total + cost, ahead)
  part.first = part.first or part.newest
  return true
end

--- At its time, or that of the newest request if that is later.
function log.charged(part, tokens, us)
  if us + longestUs(part) > now then appended(part, us, tokens, part.ahead) end
end

--- Without the newest `cost` tokens of those since `fromUs`. The newest time stays, and what is left of a request counts from there.
local function dropped(part, cost, fromUs)
  local left, entry, ahead = math.min(cost, part.used), part.newest, part.ahead
  if left == 0 then return false end
  local restCost, restTotal = 0, 0
  while entry and left > 0 and entry.us >= fromUs do
    takeOut(part, entry)
    restCost = math.max(entry.cost - left, 0)
    restTotal = entry.total - entry.cost + restCost
    left = math.max(left - entry.cost, 0)
    entry = newestUpTo(part, '+')
  end
  if restCost == 0 and entry and entry.us == part.lastUs then
    takeOut(part, entry)
    restCost, restTotal = entry.cost, entry.total
  end
  add(part, part.lastUs, restCost, restTotal, ahead)
  readUsed(part)
  return true
end

--- The number of requests that count.
local function liveCount(part)
  if not part.first then return 0 end
  local entries = redis.call('XRANGE', part.key, part.first.id, '+', 'COUNT', part.limit + 1)
  return #entries - (part.newest.cost == 0 and 1 or 0)
end

--- Where the log has no room for another request, or is ahead, the newest gains the tokens.
local function penalized(part, amount)
  local cost = math.min(amount, DEEPEST_DEBT_BURSTS * part.limit - part.used)
  if cost <= 0 then return false end
  local us = now + part.leaseUs
  if not part.newest or (us > part.lastUs and liveCount(part) < part.limit) then return appended(part, us, cost) end
  local newest = part.newest
  takeOut(part, newest)
  add(part, math.max(us, part.lastUs), newest.cost + cost, newest.total + cost, part.ahead)
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
      -- With a window of milliseconds the key may expire while this runs.
      if not entry then break end
      if entry.total >= needed then found = entry else low = middle + 1 end
    end
  end
  return found.us + part.windowUs - now
end

log.untilFree = untilFree

function log.room(part)
  return isClosed(part) and 0 or part.limit - part.used
end

function log.lifeUs(part)
  return longestUs(part)
end

function log.stepped(part, verb, amount, bound)
  if verb == 'take' then return log.passes(part, amount) and appended(part, now, amount) end
  if verb == 'reserve' then
    local waitUs = amount <= part.limit and untilFree(part, amount)
    if not waitUs or waitUs > math.min(bound, part.windowUs + FURTHEST_US) then return false end
    part.waitUs = waitUs
    return appended(part, now + waitUs + part.leaseUs, amount, waitUs > 0)
  end
  if verb == 'penalize' then return penalized(part, amount) end
  if verb == 'refund' then return dropped(part, amount, 0) end
  if verb == 'giveBack' then return part.lastUs == bound + part.leaseUs and dropped(part, amount, part.lastUs) end
  return false
end

--- Also where nothing was spent or returned: the entry takes the current numbers and ban.
function log.write(part)
  if part.mended then
    local newest = part.newest
    local isOver = not newest or part.lastUs < oldestUs(part)
    if isOver or not newest.id then redis.call('DEL', part.key) else takeOut(part, newest) end
    if not isOver then add(part, part.lastUs, newest.cost, newest.total, part.ahead)
    else part.newest, part.lastUs, part.total, part.sequence = nil, 0, 0, 0 end
    if isOver and (part.blockedUs > 0 or part.held > 0) then
      part.kept = nil
      add(part, 0, 0, 0, false)
    end
    part.mended, part.keptSinceUs = false, 0
    readUsed(part)
  end
  local _, holdsUs = holdsOf(part)
  redis.call('PEXPIREAT', part.key, endMs(math.max(part.lastUs + longestUs(part) - now, part.blockedUs, holdsUs)))
end

function log.status(part, amount)
  local newest = part.newest
  if newest and newest.cost == 0 and newest.id then newest = newestUpTo(part, '(' .. newest.id) or newest end
  local untilNew = part.used > 0 and newest.us + part.windowUs - now or opensUs(part) - now
  return isClosed(part) and part.limit or part.used, untilFree(part, amount), untilNew
end

--- What would pass now, at most `want`, nothing below `least`; it counts from the end of the lease, the latest time at which it may be spent. See scripts/lease.lua.
function log.leased(part, want, least)
  if isClosed(part) then return 0, 0 end
  local tokens = math.min(math.max(part.limit - part.used, 0), want)
  if tokens < least then return 0, 0 end
  if tokens > 0 then appended(part, now + part.leaseUs, tokens) end
  return tokens, part.leaseUs
end
