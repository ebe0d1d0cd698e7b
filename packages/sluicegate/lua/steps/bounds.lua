--- How far beyond its limit a key can be pushed, and how far ahead tokens are booked.

local DEEPEST_DEBT_BURSTS = 11
--- The store keeps no other record of bookings: debt further ahead than this comes from a clock that stepped back, not from a booking.
local FURTHEST_US = 3600000000
--- The time for which numbers of a policy count as in use after they were last seen: as long as a deployment may take.
local IN_USE_US = 3600000000
--- No token is leased for longer: twice the longest horizon.
local LONGEST_LEASE_US = 20000000
