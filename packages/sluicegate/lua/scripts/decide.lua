--- One verb on one policy. What it is given and answers: steps/parts.lua.

return decided(ARGV[3] or 'take', { partOf(next(forms), KEYS[1], ARGV[1], ARGV[2]) })
