--- Overrides: policies of single keys, applied by all processes of a shared limiter.
--
-- KEYS      one hash: fields that are keys as JSON, each with its policy as JSON, and the field "", which is no JSON, with a number that grows with
--           each change; it begins with the time, so that a new hash never repeats a number of the one before
-- ARGV      "load" version; "set" key policy most, where `most` bounds the number of keys; "delete" key
-- reply     load: the number, and if it differs from `version` the fields and policies in turn; the others: 1 if done, else 0

local verb, field = ARGV[1], ARGV[2]

if verb == 'load' then
  local all = { tonumber(redis.call('HGET', KEYS[1], '') or 0) }
  if all[1] == tonumber(field) then return all end
  local fields = redis.call('HGETALL', KEYS[1])
  for i = 1, #fields, 2 do
    if fields[i] ~= '' then
      all[#all + 1] = fields[i]
      all[#all + 1] = fields[i + 1]
    end
  end
  return all
end

if verb == 'set' then
  if redis.call('HEXISTS', KEYS[1], field) == 0 and redis.call('HLEN', KEYS[1]) > tonumber(ARGV[4]) then return 0 end
  redis.call('HSET', KEYS[1], field, ARGV[3])
elseif redis.call('HDEL', KEYS[1], field) == 0 then
  return 0
end
if redis.call('HEXISTS', KEYS[1], '') == 0 then
  local time = redis.call('TIME')
  redis.call('HSET', KEYS[1], '', string.format('%.0f', time[1] * 1000000 + time[2]))
end
redis.call('HINCRBY', KEYS[1], '', 1)
return 1
