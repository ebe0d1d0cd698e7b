--- Integers in doubles: every result is below 2^53, and exact.

--- `a / b` rounded up, for a >= 0 and b > 0.
local function ceilDiv(a, b)
  local rest = a % b
  if rest == 0 then return a / b end
  return (a - rest) / b + 1
end

--- `a * b / c` rounded down, and the remainder, for 0 <= a < 2^53 and 0 <= b <= c < 2^50. The product may be far above 2^53.
local function mulDiv(a, b, c)
  if a * b < 9007199254740992 then
    local rest = a * b % c
    return (a * b - rest) / c, rest
  end
  -- Long division, two bits of `a` at a time.
  local quotient, rest = 0, 0
  for shift = 52, 0, -2 do
    local part = rest * 4 + math.floor(a / 2 ^ shift) % 4 * b
    rest = part % c
    quotient = quotient * 4 + (part - rest) / c
  end
  return quotient, rest
end

--- The same rounded up.
local function mulDivUp(a, b, c)
  local quotient, rest = mulDiv(a, b, c)
  if rest > 0 then return quotient + 1 end
  return quotient
end
