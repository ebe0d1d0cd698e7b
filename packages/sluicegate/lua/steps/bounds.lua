--- How far beyond its limit a key can be pushed, and how far ahead tokens are booked.

local DEEPEST_DEBT_BURSTS = 11
--- As the store keeps no other record of what was booked, a clock that stepped back further than this is told from a booking.
local FURTHEST_US = 3600000000
--- Numbers of a policy count as in use for so long after they were last seen: as long as a deployment may take.
local IN_USE_US = 3600000000
--- No token is leased for longer: twice the longest horizon.
local LONGEST_LEASE_US = 20000000
