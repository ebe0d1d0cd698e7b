/**
 * GCRA as one would write it in Lua: one value a key, read, compared, written back.
 *
 * KEYS 1: the key; ARGV: microseconds a token, microseconds of the burst, and what `now` needs. Answers whether it passed, and otherwise
 * after how many microseconds it would.
 */
export function bucketScript(now: string): string {
  return `
local token, capacity = tonumber(ARGV[1]), tonumber(ARGV[2])
local now = ${now}
local arrival = math.max(tonumber(redis.call('GET', KEYS[1]) or 0), now) + token
if arrival - now > capacity then return { 0, arrival - now - capacity } end
redis.call('SET', KEYS[1], string.format('%.0f', arrival), 'PX', math.ceil((arrival - now) / 1000) + 1)
return { 1, 0 }
`
}

/** The server's clock, in microseconds. */
export const SERVER_NOW = "(function() local time = redis.call('TIME') return time[1] * 1000000 + time[2] end)()"
