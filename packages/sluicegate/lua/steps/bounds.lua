--- How far beyond its limit a key can be pushed, and how far ahead tokens are booked.

local DEEPEST_DEBT_BURSTS = 11
--- As the store keeps no other record of what was booked, a clock that stepped back further than this is told from a booking.
local FURTHEST_US = 3600000000
