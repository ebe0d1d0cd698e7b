--- Concurrency: the slots that are held, in a sorted set by the time at which each expires. Twin of assembly/algorithms/concurrency.ts.
--
-- members   "<time to live in microseconds> <permit> <slot of that permit>", scored by the end in microseconds; and while the key is banned
--           "block <length>", scored by the end of the ban below 0, before all slots
-- numbers   limit, time to live in microseconds
-- more      permit, its own text for each take; of `giveBack` also the number of booked slots

--- An even number.
local AT_ONCE = 1000

local concurrency = {}
encodings.concurrency = concurrency

local function member(part, permit, place)
  return whole(part.ttlUs) .. ' ' .. permit .. ' ' .. whole(place)
end

--- The slots of this permit that are still held: slots are numbered from 1.
local function placesOf(part, count)
  local held = {}
  for place = 1, count do
    local name = member(part, part.permit, place)
    local finish = redis.call('ZSCORE', part.key, name)
    if finish and tonumber(finish) > now then held[#held + 1] = name end
  end
  return held
end

--- Slots taken under a clock that was ahead of this one last no longer than if taken under this one.
local function mended(part)
  local newest = redis.call('ZREVRANGE', part.key, 0, 0, 'WITHSCORES')[2]
  if not newest or newest - now <= part.ttlUs then return end
  for _, name in ipairs(redis.call('ZRANGEBYSCORE', part.key, '(' .. whole(now + part.ttlUs), '+inf')) do
    local latest = now + tonumber(string.match(name, '^%d+'))
    if tonumber(redis.call('ZSCORE', part.key, name)) > latest then redis.call('ZADD', part.key, whole(latest), name) end
  end
end

local function readUsed(part)
  part.used = redis.call('ZCOUNT', part.key, '(' .. whole(now), '+inf')
end

local function readBlocked(part)
  local block = redis.call('ZRANGEBYSCORE', part.key, '-inf', '(0', 'WITHSCORES')
  if not block[1] then return readBlock(part) end
  readBlock(part, -block[2], string.match(block[1], '%d+$'))
end

function concurrency.read(part)
  local limit, ttlUs = string.match(part.numbers, '^(%d+) (%d+)$')
  part.limit, part.ttlUs = tonumber(limit), tonumber(ttlUs)
  part.permit, part.booked = string.match(part.more, '^(%S*) ?(%S*)$')
  readBlocked(part)
  mended(part)
  readUsed(part)
  return true
end

function concurrency.passes(part, amount)
  return part.used + amount <= part.limit
end

--- Calls a command in groups of arguments that fit on a server's stack.
local function inShares(command, key, list)
  for from = 1, #list, AT_ONCE do redis.call(command, key, unpack(list, from, math.min(from + AT_ONCE - 1, #list))) end
  return #list > 0
end

--- Sets the ends of slots to a time to live from now.
local function timed(part, names)
  local finish, list = whole(now + part.ttlUs), {}
  for i, name in ipairs(names) do list[2 * i - 1], list[2 * i] = finish, name end
  return inShares('ZADD', part.key, list)
end

local function given(part, permit, count)
  local names = {}
  for place = 1, count do names[place] = member(part, permit, place) end
  return timed(part, names)
end

local function removed(part, names)
  return inShares('ZREM', part.key, names)
end

--- The last `count` of a list.
local function tail(list, count)
  local found = {}
  for i = math.max(#list - count, 0) + 1, #list do found[#found + 1] = list[i] end
  return found
end

--- Slots that end last are removed first; of equals the newest.
local function last(part, count)
  return redis.call('ZREVRANGEBYSCORE', part.key, '+inf', '(' .. whole(now), 'LIMIT', 0, count)
end

function concurrency.stepped(part, verb, amount, bound)
  local changed = false
  if verb == 'take' or verb == 'reserve' then
    changed = concurrency.passes(part, amount) and given(part, part.permit, amount)
  elseif verb == 'refund' then changed = removed(part, last(part, math.min(amount, part.used)))
  elseif verb == 'penalize' then changed = given(part, part.permit, math.min(amount, math.max(part.limit - part.used, 0)))
  elseif verb == 'release' then changed = removed(part, placesOf(part, amount))
  elseif verb == 'giveBack' then
    local held = placesOf(part, tonumber(part.booked))
    changed = removed(part, tail(held, amount))
  elseif verb == 'heartbeat' then changed = timed(part, placesOf(part, amount))
  end
  readUsed(part)
  return changed
end

function concurrency.write(part)
  redis.call('ZREMRANGEBYSCORE', part.key, '-inf', whole(now))
  local newest = redis.call('ZREVRANGE', part.key, 0, 0, 'WITHSCORES')[2] or now
  if part.blockedUs > 0 then redis.call('ZADD', part.key, whole(-now - part.blockedUs), 'block ' .. whole(part.blockUs)) end
  part.mended = false
  redis.call('PEXPIREAT', part.key, endMs(math.max(newest - now, part.blockedUs)))
end

function concurrency.status(part, amount)
  local missing = part.used + amount - part.limit
  local untilFree, untilNew = 0, 0
  -- With a time to live of milliseconds the key may expire while this runs.
  if missing > 0 and missing <= part.used then
    local ends = redis.call('ZRANGEBYSCORE', part.key, '(' .. whole(now), '+inf', 'WITHSCORES', 'LIMIT', missing - 1, 1)[2]
    untilFree = (ends or now + 1) - now
  end
  if part.used > 0 then untilNew = (redis.call('ZREVRANGE', part.key, 0, 0, 'WITHSCORES')[2] or now + 1) - now end
  return part.used, untilFree, untilNew
end
