--- One step on what a region holds of a key: tokens that the home charged, each with its end, and what is known of the key there.
--
-- Every process of the region calls it, none leads. A draw that finds the tokens low claims the next renewal; the claim ends by itself, and
-- two renewals at once only bring more tokens. A token ends by this server's clock, counted from before the request for it was sent. Ended
-- ones are kept for a moment, so that what processes bring back late goes back to the home with them. Where the clock ran back, all tokens are void.
--
-- KEYS   the key in the region
-- ARGV   the verb, and its numbers in one text; times in microseconds
--   draw     tokens wanted; the fewest that are of use; tokens that callers requested, -1 to change nothing; the period of renewals; how long
--            one takes; how long a claim holds; how long a token lasts; the time of this server as the caller foresees it, 0 for unknown; 1
--            where a key of any pace is renewed
--   deposit  1 for a renewal, 0 for what a take learned at the home; when it was claimed; how long the tokens last from then on; how long
--            ago that was by the caller's clock; tokens; tokens wanted; the fewest of use; how long fewer would be denied; how long the key
--            is banned; tokens left at the home, and until it is full there; the demand of all regions, -1 for unknown; the period; the id of
--            the home's grant, 0 where only its process may return it
--   back     tokens; their end; the id
--   reclaim  an end: what is left of the tokens with that end is void
--   settle   what is owed is about to be charged
--   lost     the home did not answer a renewal; what was owed with its claim
--   block    for how long; 0 lifts it
--   owe      tokens that were admitted without the home, to be charged there; fewer than none where some came back
--   reset
-- reply
--   draw     the time; tokens drawn; tokens left; 1 for a claim, and 2 more while the home has less than is wanted; how long the fewest are
--            denied, or until a renewal on its way should have come, 0 where only the home knows; how long the key is banned; tokens left at the home, and until it is full; with a claim the
--            pace of demand in tokens a microsecond, that of all regions, how long ago the claim before was, and what is owed, which is the
--            claimant's to charge; then for each lot of the drawn tokens its number, its end and its id
--   deposit  when the tokens end
--   back     1; 0 for tokens that ended too long ago, which the home alone can use
--   reclaim  how many were left
--   settle   how many were owed
--   owe      since when the key is known here: another time says that this server lost its data
--   others   the time

local SEEN, DEMAND, SINCE, PACE, CLAIMED, CLAIM_END, DENIED, DENIED_COST, BLOCKED, OWED, REST, FULL, TOTAL = 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13
local BORN, BAN_KNOWN, METERED = 14, 15, 16
local FIELDS = 16
--- Over how long the pace is an average.
local PACE_US = 2000000
--- A denial is looked at again after so long: another region may have given back, or lifted a ban.
local LONGEST_DENIAL_US = 2000000
local MOST_LOTS = 10
--- How long ended tokens are kept, for the home.
local RETURNED_US = 2000000
--- Tokens that come back later than this after their end are too late to go to the home with the others of their lot.
local LATE_US = 200000
--- After a ban was set or lifted here, what the home said before it had heard of that does not count.
local BAN_SETTLES_US = 2000000
--- A key is renewed that probably needs so many tokens while one lasts. One that needs fewer than SLOW is renewed before its tokens end, not
--- when they are used up.
local WARM, SLOW = 1, 16
--- After how long a late renewal is looked for again. The clock was set where it is further ahead than LEAST_STEP_US of what a caller foresees. No
--- token lasts longer than LONGEST_US: one with a later end was drawn before the clock was set back.
local SOON_US, LEAST_STEP_US, LONGEST_US = 50000, 1000000, 4000000
--- What the home had is known for this number of periods.
local STALE = 3
--- How long the pace of an idle key is kept, and what it owes.
local IDLE_MS, OWING_MS = 60000, 86400000

local verb, numbers = ARGV[1], {}
for number in string.gmatch(ARGV[2], '%S+') do numbers[#numbers + 1] = tonumber(number) end
local function argument(n) return numbers[n] end

local head, tail = string.match(redis.call('GET', KEYS[1]) or '', '^([^;]*);?(.*)$')
local state, ends, tokens, ids, left = {}, {}, {}, {}, 0
for number in string.gmatch(head, '%S+') do state[#state + 1] = tonumber(number) end
for field = #state + 1, FIELDS do state[field] = 0 end
if state[SEEN] > now then
  tail = ''
  state[SINCE], state[DEMAND], state[CLAIMED], state[CLAIM_END], state[DENIED] = now, 0, now, 0, math.min(state[DENIED], now)
  state[BAN_KNOWN], state[METERED] = math.min(state[BAN_KNOWN], now), math.min(state[METERED], now)
end
state[SEEN] = now
if state[BORN] == 0 then state[BORN] = now end
for number, finish, id in string.gmatch(tail, '(%d+) (%d+) ?(%d*)') do
  if finish - now > -RETURNED_US then
    tokens[#tokens + 1], ends[#ends + 1], ids[#ids + 1] = tonumber(number), tonumber(finish), tonumber(id) or 0
    if finish - now > 0 then left = left + number end
  end
end

local function voided()
  ends, tokens, ids = {}, {}, {}
end

local function add(number, finish, id)
  if number <= 0 or finish <= now - RETURNED_US or finish > now + LONGEST_US then return end
  local at = 1
  while ends[at] and ends[at] < finish do at = at + 1 end
  if ends[at] == finish then
    tokens[at] = tokens[at] + number
  else
    table.insert(tokens, at, number)
    table.insert(ends, at, finish)
    table.insert(ids, at, id)
  end
  if #ends > MOST_LOTS then
    tokens[1] = tokens[1] + tokens[2]
    table.remove(tokens, 2)
    table.remove(ends, 2)
    table.remove(ids, 2)
  end
end

local function write()
  local last = math.max(now, state[BLOCKED], state[DENIED], ends[#ends] or 0)
  local words = {}
  for field = 1, FIELDS do
    words[field] = (field == PACE or field == TOTAL) and string.format('%.9g', state[field]) or whole(state[field])
  end
  local text = table.concat(words, ' ')
  for at = 1, #ends do
    if tokens[at] > 0 then text = text .. ';' .. whole(tokens[at]) .. ' ' .. whole(ends[at]) .. ' ' .. whole(ids[at]) end
  end
  local keptMs = math.max(IDLE_MS * SLACK_MS, state[OWED] > 0 and OWING_MS or 0)
  redis.call('SET', KEYS[1], text, 'PX', whole(math.ceil((last - now) / 1000) + keptMs))
end

if verb == 'draw' then
  local want, least, isPeek = argument(1), argument(2), argument(3) < 0
  local periodUs, leadUs, claimUs, leaseUs = argument(4), argument(5), argument(6), argument(7)
  if state[SINCE] == 0 then state[SINCE] = now end
  -- What the clock skipped is no time in which there was no demand.
  local skipped = now - argument(8)
  for _, field in ipairs(skipped > LEAST_STEP_US and skipped < now and { SINCE, CLAIMED } or {}) do
    if state[field] + skipped <= now then state[field] = state[field] + skipped end
  end
  if not isPeek then state[DEMAND] = state[DEMAND] + argument(3) end
  local sinceUs = now - state[SINCE]
  local pace = state[PACE]
  if sinceUs > 0 then pace = pace + (1 - math.exp(-sinceUs / PACE_US)) * (state[DEMAND] / sinceUs - pace) end
  local agoUs = now - state[CLAIMED]
  -- Without a renewal for so long nothing is known of the home: demand that begins goes there, as with a cold key.
  if state[DENIED] <= now and agoUs >= STALE * periodUs then state[DENIED] = 0 end
  local isBlocked, isScarce = state[BLOCKED] > now, state[DENIED] > 0
  -- Of tokens too few for all, no more are drawn than fall to the time since the last: else whoever comes first would have them all.
  local nextUs = state[CLAIMED] + (state[CLAIM_END] > now and math.floor(leadUs / 2) or periodUs) - now
  local isMetered, sinceMetered = isScarce and nextUs > 0 and left < pace * nextUs, now - state[METERED]
  local metered = isMetered and left * sinceMetered / (sinceMetered + nextUs) or left
  local drawn, lots = 0, {}
  if not isBlocked and metered >= least then
    drawn = math.min(want, math.floor(metered))
    if isMetered and not isPeek then state[METERED] = now - math.floor(sinceMetered * (1 - drawn / metered)) end
    local open = drawn
    for at = 1, #ends do
      local part = ends[at] > now and math.min(open, tokens[at]) or 0
      if part > 0 then
        lots[#lots + 1], lots[#lots + 2], lots[#lots + 3] = part, ends[at], ids[at]
        if not isPeek then tokens[at] = tokens[at] - part end
        open = open - part
      end
    end
    if not isPeek then left = left - drawn end
  end
  local need = pace * leadUs
  local isLow = left <= need or (left <= need + 2 * math.sqrt(need) and agoUs >= periodUs)
    or (pace * leaseUs < SLOW and 2 * agoUs >= leaseUs)
  local isWarm = argument(9) == 1 or pace * leaseUs >= WARM
  local isDue = isLow and now >= state[DENIED] and isWarm and (not isScarce or agoUs >= periodUs)
  -- A ban may have been lifted elsewhere.
  if isBlocked then isDue = agoUs >= LONGEST_DENIAL_US end
  local isClaimed, owed = not isPeek and isDue and now >= state[CLAIM_END], state[OWED]
  if isClaimed then
    state[CLAIMED], state[CLAIM_END], state[OWED] = now, now + claimUs, 0
    if isScarce then state[DENIED] = now + claimUs end
  end
  if isClaimed or sinceUs >= periodUs then state[PACE], state[DEMAND], state[SINCE] = pace, 0, now end
  if not isPeek then write() end
  local deniedUs = 0
  if drawn == 0 and isScarce and least >= state[DENIED_COST] then
    -- A renewal on its way brings news long before its claim ends.
    deniedUs = state[CLAIM_END] > now and math.max(state[CLAIMED] + leadUs - now, SOON_US) or math.max(state[DENIED] - now, 0)
  end
  if drawn == 0 and isMetered and left >= least then
    deniedUs = math.max(1, math.ceil(least * (sinceMetered + nextUs) / left) - sinceMetered)
  end
  local claim = {}
  if isClaimed then claim = { string.format('%.9g', pace), string.format('%.9g', state[TOTAL]), agoUs, owed } end
  for at = 1, #lots do claim[#claim + 1] = lots[at] end
  return { now, drawn, left, (isClaimed and 1 or 0) + (isScarce and 2 or 0), deniedUs, math.max(0, state[BLOCKED] - now),
    state[REST], math.max(0, state[FULL] - now), unpack(claim) }
end

if verb == 'deposit' then
  local isRenewal, claimed, lastUs, agoUs = argument(1) == 1, argument(2), argument(3), argument(4)
  local number, wanted, least, deniedUs, blockedUs = argument(5), argument(6), argument(7), argument(8), argument(9)
  local periodUs, finish = argument(13), 0
  if (isRenewal and claimed or now) >= state[BAN_KNOWN] then state[BLOCKED] = blockedUs > 0 and now + blockedUs or 0 end
  if blockedUs > 0 then
    voided()
  else
    -- The earlier of both, as the clock may have been set meanwhile.
    finish = now + lastUs - agoUs
    if claimed <= now then finish = math.min(finish, claimed + lastUs) end
    add(number, finish, argument(14))
  end
  if isRenewal then state[CLAIM_END], state[METERED] = 0, now end
  if number < wanted then
    local againUs = isRenewal and math.max(deniedUs, state[CLAIMED] + periodUs - now) or deniedUs
    state[DENIED], state[DENIED_COST] = now + math.min(againUs, LONGEST_DENIAL_US), least
  else
    state[DENIED], state[DENIED_COST] = 0, 0
  end
  state[REST], state[FULL] = argument(10), now + argument(11)
  if argument(12) >= 0 then state[TOTAL] = argument(12) end
  write()
  return finish
end

if verb == 'reclaim' then
  for at = 1, #ends do
    if ends[at] == argument(1) then
      local number = tokens[at]
      table.remove(ends, at)
      table.remove(tokens, at)
      table.remove(ids, at)
      write()
      return number
    end
  end
  return 0
end
if verb == 'settle' then
  local owed = state[OWED]
  state[OWED] = 0
  if owed > 0 then write() end
  return owed
end
if verb == 'owe' then
  state[OWED] = math.max(0, state[OWED] + argument(1))
  write()
  return state[BORN]
end
if verb == 'back' then
  if argument(2) <= now - LATE_US then return 0 end
  add(argument(1), argument(2), argument(3))
  write()
  return 1
end
if verb == 'reset' then
  voided()
  for field = 1, FIELDS do if field ~= SEEN and field ~= BORN then state[field] = 0 end end
  state[BAN_KNOWN] = now + BAN_SETTLES_US
elseif verb == 'lost' then
  state[DENIED], state[DENIED_COST], state[OWED] = 0, 0, state[OWED] + argument(1)
else
  local us = argument(1)
  state[BLOCKED], state[BAN_KNOWN] = us == 0 and 0 or math.max(state[BLOCKED], now + us), now + BAN_SETTLES_US
  if us > 0 then voided() end
end
write()
return now
