--- One verb on several policies: all change or none. Arguments and reply: steps/parts.lua.

local parts = {}
for i, key in ipairs(KEYS) do parts[i] = partOf(ARGV[3 * i - 1], key, ARGV[3 * i], ARGV[3 * i + 1]) end
return decided(ARGV[1], parts)
