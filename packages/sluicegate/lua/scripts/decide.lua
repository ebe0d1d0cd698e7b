--- One verb on one policy, or on several of which all agree or none changes. What it is given and answers: steps/parts.lua.

local verb = ARGV[1]
--- Of these all parts pass now, or nothing happens.
local IS_TAKE = verb == 'take' or (verb == 'reserve' and #KEYS > 2)

local function partAt(i)
  local part = { key = KEYS[2 * i - 1], blockKey = KEYS[2 * i], at = ARGUMENTS_BEFORE + (i - 1) * ARGUMENTS }
  part.form, part.amount, part.bound = forms[ARGV[part.at + 1]], tonumber(ARGV[part.at + 2]), tonumber(ARGV[part.at + 3])
  return part
end

--- False when a calendar's windows are not known.
local function read(part)
  local values = redis.call('MGET', part.key, part.blockKey)
  readBlock(part, values[2])
  return part.form.read(part, values[1])
end

local function blocked(part)
  if part.amount == 0 then
    part.blockedUs = 0
    redis.call('DEL', part.blockKey)
  elseif part.amount > part.blockedUs then
    writeBlock(part, part.amount)
  end
end

local function changed(part)
  if not part.form.stepped(part, verb, part.amount, part.bound) then return false end
  countElsewhere(part, verb, part.amount)
  part.form.write(part)
  return true
end

local function done(part, passes)
  if verb == 'reset' then
    redis.call('DEL', part.key, part.blockKey)
    return read(part)
  end
  if part.mended then part.form.write(part) end
  if verb == 'peek' then return passes end
  if verb == 'block' then return blocked(part) end
  if IS_TAKE then return passes and changed(part) end
  if verb == 'reserve' and part.blockedUs > 0 then return false end
  return changed(part)
end

local parts, passes = {}, true
for i = 1, #KEYS / 2 do
  local part = partAt(i)
  if not read(part) then return redis.error_reply('WINDOW ' .. whole(now)) end
  passes = passes and part.blockedUs == 0 and part.form.passes(part, part.amount)
  parts[i] = part
end

local reply = { now }
for i, part in ipairs(parts) do
  local isDone = done(part, passes)
  -- What was reserved is answered as a peek for one token right after.
  local asks = verb == 'take' or verb == 'peek' or (verb == 'reserve' and not isDone)
  local debt, untilFree, untilNew = part.form.standing(part, asks and part.amount or 1)
  local at = 6 * (i - 1) + 1
  reply[at + 1], reply[at + 2], reply[at + 3] = isDone and 1 or 0, debt, part.blockedUs
  reply[at + 4], reply[at + 5], reply[at + 6] = untilFree, untilNew, part.waitUs or 0
end
return reply
