--- The time of this call: microseconds since the Unix epoch, on the server's wall clock. Nobody else reads one.
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]

--- Milliseconds by which a key outlives what it holds: one, because the server's own clock is of milliseconds.
local SLACK_MS = 1
