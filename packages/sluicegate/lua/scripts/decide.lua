--- One verb on one policy. Arguments and reply: steps/parts.lua.

return decided(ARGV[3] or 'take', { partOf(next(encodings), KEYS[1], ARGV[1], ARGV[2]) })
