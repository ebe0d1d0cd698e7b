--- The time of this call: microseconds since the Unix epoch, on the server's wall clock. No other code reads a clock.
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]

--- Milliseconds by which a key outlives its contents: one, because the server expires keys by milliseconds.
local SLACK_MS = 1
