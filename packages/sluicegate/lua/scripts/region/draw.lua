--- Takes tokens of those that the region holds.
---
--- given  want; least, with fewer none are drawn; demand, tokens that callers requested, absent for a look that changes nothing; leadUs, how
---        long a renewal takes; foreseenUs, the time of this server as the caller foresees it, 0 for unknown
--- reply  numbers, which `redis-region-pool.ts` names: nowUs; bornUs; tokens drawn; those left; meteredUs, after which the fewest could be drawn of tokens too few for
---        all; blockedUs; deniedUs and deniedCost; isScarce while the home has less than is wanted; claimedUs, the last renewal;
---        isRenewing; rest; fullUs; pace; total; debt. Then for each batch of the drawn tokens its number, its end and its id

local want, least, isLook = given.want, given.least, given.demand == nil
if key.since == 0 then key.since = now end
-- What the clock skipped is no time in which there was no demand.
local skippedUs = given.foreseenUs > 0 and now - given.foreseenUs or 0
for _, field in ipairs(skippedUs > LEAST_STEP_US and { 'since', 'claimed' } or {}) do
  if key[field] <= given.foreseenUs then key[field] = key[field] + skippedUs end
end
key.demand = key.demand + (given.demand or 0)
local sinceUs, pace = now - key.since, key.pace
if sinceUs > 0 then pace = pace + (1 - math.exp(-sinceUs / PACE_US)) * (key.demand / sinceUs - pace) end
if key.denied <= now and now - key.claimed >= STALE_US then key.denied = 0 end
local isScarce, isRenewing = key.denied > 0, key.claimEnd > now
-- Of tokens too few for all, no more are drawn than fall to the time since the last: else whoever comes first would have them all.
local nextUs = key.claimed + (isRenewing and math.floor(given.leadUs / 2) or PERIOD_US) - now
local isMetered, sinceMeteredUs = isScarce and nextUs > 0 and left < pace * nextUs, now - key.metered
local open = isMetered and left * sinceMeteredUs / (sinceMeteredUs + nextUs) or left
local tokens, lots = 0, {}
if key.blocked <= now and open >= least then
  tokens = math.min(want, math.floor(open))
  if isMetered and tokens > 0 then key.metered = now - math.floor(sinceMeteredUs * (1 - tokens / open)) end
  local wanted = tokens
  for _, batch in ipairs(batches) do
    local part = batch.finish > now and math.min(wanted, batch.tokens) or 0
    if part > 0 then
      lots[#lots + 1], lots[#lots + 2], lots[#lots + 3] = part, batch.finish, batch.id
      batch.tokens, wanted = batch.tokens - part, wanted - part
    end
  end
end
local meteredUs = 0
if tokens == 0 and isMetered and left >= least then
  meteredUs = math.max(1, math.ceil(least * (sinceMeteredUs + nextUs) / left) - sinceMeteredUs)
end
if sinceUs >= PERIOD_US then key.pace, key.demand, key.since = pace, 0, now end
if not isLook then
  left = left - tokens
  save()
end
local reply = {
  now, key.born, tokens, left, meteredUs, math.max(0, key.blocked - now), math.max(0, key.denied - now), key.deniedCost,
  isScarce and 1 or 0, key.claimed, isRenewing and 1 or 0, key.rest, math.max(0, key.full - now), string.format('%.9g', pace),
  string.format('%.9g', key.total), key.debt,
}
for at = 1, #lots do reply[#reply + 1] = lots[at] end
return reply
