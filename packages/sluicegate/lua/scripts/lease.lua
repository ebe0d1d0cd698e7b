--- Tokens for a process to spend by itself, of one policy.
--
-- KEYS   as in steps/parts.lua
-- ARGV   the verb "lease", then of the policy as in steps/parts.lua: form; how many tokens are wanted; the horizon in microseconds, within
--        which tokens may conform later; numbers
-- reply  the time; tokens that may be spent from now on; tokens that may be spent later, one after another as they conform; debt before;
--        microseconds for which the key is blocked; microseconds until one more would pass, and until the key is as good as new, not of a rate;
--        microseconds until the later tokens may be spent, and until all of them are void, not of a rate, whose debt says it

local part = { key = KEYS[1], blockKey = KEYS[2], at = ARGUMENTS_BEFORE }
part.form, part.amount, part.bound = forms[ARGV[part.at + 1]], tonumber(ARGV[part.at + 2]), tonumber(ARGV[part.at + 3])
local values = redis.call('MGET', part.key, part.blockKey)
local blockedUs = values[2] and math.max(values[2] - now, 0) or 0
if not part.form.read(part, values[1]) then return redis.error_reply('WINDOW ' .. whole(now)) end

local before = part.form.standing(part, 1)
local ready, later, laterUs, endUs = 0, 0, 0, 0
if blockedUs == 0 then ready, later, laterUs, endUs = part.form.leased(part, part.amount, part.bound) end
if ready + later > 0 or part.mended then part.form.write(part) end
local _, untilFree, untilNew = part.form.standing(part, 1)
return { now, ready, later, before, blockedUs, untilFree, untilNew, laterUs, endUs }
