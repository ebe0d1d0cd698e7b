--- The ordinary take of one rate, unrolled: a script makes its functions anew at each call, and this needs none of those that follow.
-- It decides as they do. A key that is blocked, and a value that was written under other numbers, booked ahead or left by another clock, are
-- theirs: nothing was changed then.

if ARGV[1] == 'take' then
  local amount, unitsPerUs, capacity, shallow = tonumber(ARGV[3]), tonumber(ARGV[6]), tonumber(ARGV[7]), tonumber(ARGV[8])
  local numbers = ARGV[5] .. ' ' .. ARGV[6] .. ' ' .. ARGV[7] .. ' ' .. ARGV[8] .. ';'
  local values = redis.call('MGET', KEYS[1], KEYS[2])
  local us, beyond = now, 0
  if values[1] then us, beyond = string.match(values[1], '^' .. numbers .. '(%d+) (%d+)$') end
  local debt = us and math.max(0, (us - now) * unitsPerUs + beyond)
  if debt and debt <= shallow and not values[2] then
    debt = debt + amount
    if debt > capacity then return { now, 0, debt - amount, 0, 0, 0, 0 } end
    beyond = debt % unitsPerUs
    us = now + (debt - beyond) / unitsPerUs
    local endMs = math.ceil((us + 1) / 1000) + SLACK_MS
    redis.call('SET', KEYS[1], numbers .. string.format('%.0f %.0f', us, beyond), 'PXAT', string.format('%.0f', endMs))
    return { now, 1, debt, 0, 0, 0, 0 }
  end
end
