--- How far beyond its limit a key can be pushed, and how far ahead tokens are booked.

local DEEPEST_DEBT_BURSTS = 11
--- No count is larger, so all are exact. A sum of two counts may be rounded; compared with a third, it is on the same side of it all the same.
local MOST_COUNT = 9007199254740991
--- The store keeps no other record of bookings: debt further ahead than this comes from a clock that stepped back, not from a booking.
local FURTHEST_US = 3600000000
--- The time for which numbers of a policy count as in use after they were last seen: as long as a deployment may take.
local IN_USE_US = 3600000000
--- No token is leased for longer: twice the longest horizon.
local LONGEST_LEASE_US = 20000000

--- The most tokens that count under a limit, penalties included.
local function deepestCount(limit)
  return math.min(DEEPEST_DEBT_BURSTS * limit, MOST_COUNT)
end
