--- The ordinary take of one fixed window, unrolled as that of a rate in steps/rate-take.lua. The whole script handles calendar windows, and a
--- window later than now, and the largest limits.
--
-- reply  the count after a take that passed, else -1 - count; microseconds until the denied amount would pass, else 0; microseconds until the
--        key is full
--
-- tools/embed-lua.ts puts this step before all others of scripts/decide.lua. Where it does not return, the whole script runs.

if not ARGV[3] then
  local value = redis.call('GET', KEYS[1]) or '0 0 0;' .. ARGV[1]
  local begin, finish, count, numbers, limit, windowUs = string.match(value, '^(%d+) (%d+) (%d+);((%d+) (%d+))$')
  if numbers == ARGV[1] and begin - now <= 0 and limit - 9007199254740900 <= 0 then
    local leftUs = windowUs - now % windowUs
    local isOver = finish - now <= 0
    if isOver then begin, finish, count = whole(now + leftUs - windowUs), whole(now + leftUs), 0 end
    local after = count + ARGV[2]
    if after - limit > 0 then return { -1 - count, leftUs, count - 0 > 0 and leftUs or 0 } end
    value = begin .. ' ' .. finish .. ' ' .. whole(after) .. ';' .. numbers
    if isOver then redis.call('SET', KEYS[1], value, 'PXAT', whole(math.ceil(finish / 1000) + SLACK_MS))
    -- The key expires with its window already.
    else redis.call('SET', KEYS[1], value, 'KEEPTTL') end
    return { after, 0, leftUs }
  end
end
