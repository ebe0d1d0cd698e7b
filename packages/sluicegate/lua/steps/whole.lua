--- An integer with all its digits: by default Lua writes no more than 14. '%.0f' takes four times as long as '%d', which on 32-bit servers
--- holds no more than these.
local function whole(number)
  if number < 0 then return '-' .. whole(-number) end
  if number < 2147483648 then return string.format('%d', number) end
  if number < 2147483648000000 then return string.format('%d%06d', number / 1000000, number % 1000000) end
  return string.format('%.0f', number)
end

--- A count in a reply. Clients that read an integer by `10 * n + code - 48` round the largest: these go as text.
local function told(count)
  return count > 9007199254740900 and whole(count) or count
end
