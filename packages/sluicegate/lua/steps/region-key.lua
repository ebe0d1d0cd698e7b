--- What a region holds of one key: tokens that the home charged, in batches that end together, and what is known of the key there.
---
--- Every process of the region calls it, none leads. A token ends by this server's clock, counted from before the request for it was sent.
--- Ended ones are kept for a moment, so that what processes give back late goes back to the home with them. Where the clock ran back, all
--- tokens are void. The processes decide how many tokens are needed, and when; here is counted what all of them did.
---
--- KEYS   the key in the region
--- ARGV   what the verb needs, as JSON; names ending in Us are microseconds

--- The numbers of a key, in the order in which they are stored. Times are by this server's clock, 0 for never.
local FIELDS = {
  'seen', -- the last use
  'demand', 'since', -- tokens that callers requested, and since when
  'pace', -- of these, tokens a microsecond on average
  'claimed', 'claimEnd', -- when a process set out to renew the key, and until when it alone does
  'denied', 'deniedCost', -- until when the home need not be called, as it is short of tokens, and what it denied; 0 while it is not known to be
  'blocked', -- the end of a ban
  'debt', -- tokens that were admitted without the home
  'rest', 'full', -- tokens left at the home, and when it is full there
  'total', -- the pace of all regions
  'born', -- since when the key is known here: another time than before says that this server lost its data
  'banKnown', -- what the home said of bans before does not count
  'metered', -- when tokens too few for all were drawn last
}
--- Of these no whole numbers.
local FRACTIONS = { pace = true, total = true }
--- Over how long the pace is an average, and how long it is measured at least.
local PACE_US, PERIOD_US = 2000000, 1000000
--- A denial is looked at again after so long: another region may have given back, or lifted a ban. Without a renewal for STALE_US nothing is
--- known of the home.
local LONGEST_DENIAL_US, STALE_US = 2000000, 3000000
local MOST_BATCHES = 10
--- How long ended tokens are kept, for the home. Tokens that come back later than LATE_US after their end are too late to go there with them.
local RETURNED_US, LATE_US = 2000000, 200000
--- After a ban was set or lifted here, what the home said before it had heard of that does not count.
local BAN_SETTLES_US = 2000000
--- The clock was set where it is further ahead than this of what a caller foresees. No token lasts longer than LONGEST_US: one with a later
--- end was drawn before the clock was set back.
local LEAST_STEP_US, LONGEST_US = 1000000, 4000000
--- How long an idle key is kept, and one with debts.
local IDLE_MS, DEBT_MS = 60000, 86400000

local given = cjson.decode(ARGV[1])
local key, batches, left = {}, {}, 0
do
  local head, tail = string.match(redis.call('GET', KEYS[1]) or '', '^([^;]*);?(.*)$')
  local stored = string.gmatch(head, '%S+')
  for _, field in ipairs(FIELDS) do key[field] = tonumber(stored() or 0) end
  if key.seen > now then
    tail = ''
    key.since, key.demand, key.claimed, key.claimEnd = now, 0, now, 0
    for _, field in ipairs({ 'denied', 'banKnown', 'metered' }) do key[field] = math.min(key[field], now) end
  end
  key.seen = now
  if key.born == 0 then key.born = now end
  for tokens, finish, id in string.gmatch(tail, '(%d+) (%d+) ?(%d*)') do
    if finish - now > -RETURNED_US then
      batches[#batches + 1] = { tokens = tonumber(tokens), finish = tonumber(finish), id = tonumber(id) or 0 }
      if finish - now > 0 then left = left + tokens end
    end
  end
end

--- Adds tokens, in the order of their ends.
local function add(tokens, finish, id)
  if tokens <= 0 or finish <= now - RETURNED_US or finish > now + LONGEST_US then return end
  local at = 1
  while batches[at] and batches[at].finish < finish do at = at + 1 end
  if batches[at] and batches[at].finish == finish then
    batches[at].tokens = batches[at].tokens + tokens
  else
    table.insert(batches, at, { tokens = tokens, finish = finish, id = id })
  end
  if #batches > MOST_BATCHES then
    batches[1].tokens = batches[1].tokens + batches[2].tokens
    table.remove(batches, 2)
  end
end

local function save()
  local last = math.max(now, key.blocked, key.denied, batches[#batches] and batches[#batches].finish or 0)
  local words = {}
  for i, field in ipairs(FIELDS) do words[i] = FRACTIONS[field] and string.format('%.9g', key[field]) or whole(key[field]) end
  local text = table.concat(words, ' ')
  for _, batch in ipairs(batches) do
    if batch.tokens > 0 then text = text .. ';' .. whole(batch.tokens) .. ' ' .. whole(batch.finish) .. ' ' .. whole(batch.id) end
  end
  local keptMs = math.max(IDLE_MS * SLACK_MS, key.debt > 0 and DEBT_MS or 0)
  redis.call('SET', KEYS[1], text, 'PX', whole(math.ceil((last - now) / 1000) + keptMs))
end
