--- How many limiters share a policy: a sorted set of their ids, by the time at which each called last. An id with a later time than this
--- server's clock is kept, as after a failover, unless it is so much later that the clock must have stepped back.
--
-- KEYS   the set
-- ARGV   the id of the caller; microseconds for which an id is remembered; the most ids, beyond which no new one is remembered
-- reply  how many there are, the caller included if there was room

local rememberedUs = tonumber(ARGV[2])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', whole(now - rememberedUs))
redis.call('ZREMRANGEBYSCORE', KEYS[1], '(' .. whole(now + rememberedUs), '+inf')
local count = redis.call('ZCOUNT', KEYS[1], '-inf', '+inf')
if count < tonumber(ARGV[3]) or redis.call('ZSCORE', KEYS[1], ARGV[1]) then
  count = count + redis.call('ZADD', KEYS[1], whole(now), ARGV[1])
end
redis.call('PEXPIREAT', KEYS[1], whole(math.ceil((now + 2 * rememberedUs) / 1000) + SLACK_MS))
return count
