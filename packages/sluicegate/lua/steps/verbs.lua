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
    local slots, held = part.slots, part.held
    redis.call('DEL', part.key)
    local isRead = part.encoding.read(part)
    -- What is held is still to be spent.
    part.slots, part.held, part.mended = slots, held, true
    if held > 0 then part.encoding.write(part) end
    return isRead
  end
  if part.mended then part.encoding.write(part) end
  if verb == 'peek' then return passes end
  if verb == 'block' then return blocked(part) end
  if isTake then return passes and changed(part, verb) end
  if verb == 'reserve' and part.blockedUs > 0 then return false end
  return changed(part, verb)
end

--- What the reply says of a part, see steps/parts.lua.
local function replied(reply, i, part, isDone, amount)
  local debt, untilFree, untilNew = statusBeside(part, amount)
  local at = 6 * (i - 1) + 1
  reply[at + 1], reply[at + 2], reply[at + 3] = isDone and 1 or 0, told(debt), part.blockedUs
  reply[at + 4], reply[at + 5], reply[at + 6] = untilFree, untilNew, part.waitUs or 0
end

--- After all of them, where something is held.
local function repliedHeld(reply, parts)
  for _, part in ipairs(parts) do reply[#reply + 1] = told(part.held) end
end

--- The whole reply, see steps/parts.lua.
local function decided(verb, parts)
  local isTake = verb == 'take' or (verb == 'reserve' and #parts > 1)
  local passes, isHeld = true, false
  for _, part in ipairs(parts) do
    if not part.encoding.read(part) then return redis.error_reply('WINDOW ' .. whole(now)) end
    passes = passes and part.blockedUs == 0 and passesBeside(part, part.amount)
    isHeld = isHeld or part.held > 0
  end
  -- Nothing is booked ahead of holds.
  isTake = isTake or (verb == 'reserve' and isHeld)
  local reply = { now }
  for i, part in ipairs(parts) do
    local isDone = done(part, verb, isTake, passes)
    -- A reservation is answered like a peek for one token right after it.
    local asks = verb == 'take' or verb == 'peek' or (verb == 'reserve' and not isDone)
    replied(reply, i, part, isDone, asks and part.amount or 1)
  end
  if isHeld then repliedHeld(reply, parts) end
  return reply
end
