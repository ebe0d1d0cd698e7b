--- A ban, or its end, after which nothing is known of the key but its debt.
---
--- given  us, for how long; 0 lifts it
--- reply  the time

batches, key.banKnown = {}, now + BAN_SETTLES_US
if given.us > 0 then
  key.blocked = math.max(key.blocked, now + given.us)
else
  for _, field in ipairs(FIELDS) do
    if field ~= 'seen' and field ~= 'born' and field ~= 'debt' and field ~= 'banKnown' then key[field] = 0 end
  end
end
save()
return now
