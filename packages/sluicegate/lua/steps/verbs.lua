--- One verb on all parts: all change or none.

local function blocked(part)
  local isLifted = part.amount == 0 and part.blockedUs > 0
  if not isLifted and part.amount <= part.blockedUs then return end
  part.blockedUs, part.blockUs = part.amount, part.amount
  part.mended = true
  part.encoding.write(part)
end

local function changed(part, verb)
  if not part.encoding.stepped(part, verb, part.amount, part.bound) then return false end
  countElsewhere(part, verb, part.amount)
  part.encoding.write(part)
  return true
end

--- @param isTake all parts pass now, or nothing happens.
local function done(part, verb, isTake, passes)
  if verb == 'reset' then
    redis.call('DEL', part.key)
    return part.encoding.read(part)
  end
  if part.mended then part.encoding.write(part) end
  if verb == 'peek' then return passes end
  if verb == 'block' then return blocked(part) end
  if isTake then return passes and changed(part, verb) end
  if verb == 'reserve' and part.blockedUs > 0 then return false end
  return changed(part, verb)
end

--- The whole reply, see steps/parts.lua.
local function decided(verb, parts)
  local isTake = verb == 'take' or (verb == 'reserve' and #parts > 1)
  local passes = true
  for _, part in ipairs(parts) do
    if not part.encoding.read(part) then return redis.error_reply('WINDOW ' .. whole(now)) end
    passes = passes and part.blockedUs == 0 and part.encoding.passes(part, part.amount)
  end
  local reply = { now }
  for i, part in ipairs(parts) do
    local isDone = done(part, verb, isTake, passes)
    -- A reservation is answered like a peek for one token right after it.
    local asks = verb == 'take' or verb == 'peek' or (verb == 'reserve' and not isDone)
    local debt, untilFree, untilNew = part.encoding.status(part, asks and part.amount or 1)
    local at = 6 * (i - 1) + 1
    reply[at + 1], reply[at + 2], reply[at + 3] = isDone and 1 or 0, debt, part.blockedUs
    reply[at + 4], reply[at + 5], reply[at + 6] = untilFree, untilNew, part.waitUs or 0
  end
  return reply
end
