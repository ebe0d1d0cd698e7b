import { ALLOWED, type Answer, CAPACITY_US, deniedFor, passed, TOKEN_US } from '../bucket.js'
import { SERVER_NOW } from '../bucket-script.js'
import type { FleetContender } from '../fleet-contender.js'
import { loadScript, nodeRedis } from '../node-redis.js'
import type { Place } from '../place.js'

const TOKENS_A_BORROW = 100

/** KEYS 1: the key; ARGV: microseconds a token, microseconds of the burst, tokens wanted. Answers how many are granted, and after how many microseconds there is one more. */
const BORROW = `
local token, capacity, want = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local now = ${SERVER_NOW}
local arrival = math.max(tonumber(redis.call('GET', KEYS[1]) or 0), now)
local granted = math.min(math.floor((capacity - (arrival - now)) / token), want)
if granted > 0 then
  arrival = arrival + granted * token
  redis.call('SET', KEYS[1], string.format('%.0f', arrival), 'PX', math.ceil((arrival - now) / 1000) + 1)
end
return { granted, math.max(0, arrival + token - capacity - now) }
`

/** What a process holds of a key. */
interface Purse {
  tokens: number
  retryMs: number
  asking: Promise<void> | undefined
}

/**
 * Two tiers: tokens are borrowed from the server by the hundred and spent here, and while there are none to borrow that is remembered.
 * What is borrowed is good for ever, so that processes together may spend more at once than the burst.
 */
export async function batchBorrow(place: Place): Promise<FleetContender> {
  const sha1 = await loadScript(place, BORROW)
  const client = await nodeRedis(place)
  const purses = new Map<string, Purse>()
  const numbers = [TOKEN_US, CAPACITY_US, TOKENS_A_BORROW].map(String)

  const borrow = async (key: string, purse: Purse): Promise<void> => {
    const [granted, untilFreeUs] = (await client.evalSha(sha1, { keys: [key], arguments: numbers })) as [number, number]
    purse.asking = undefined
    purse.tokens += granted
    if (granted === 0) purse.retryMs = performance.now() + untilFreeUs / 1000
  }
  const held = (purse: Purse): Answer | undefined => {
    if (purse.tokens > 0) {
      purse.tokens--
      return ALLOWED
    }
    const leftMs = purse.retryMs - performance.now()
    return leftMs > 0 ? deniedFor(leftMs * 1000) : undefined
  }
  const afterBorrowing = async (key: string, purse: Purse): Promise<Answer> => {
    for (;;) {
      purse.asking ??= borrow(key, purse)
      await purse.asking
      const answer = held(purse)
      if (answer !== undefined) return answer
    }
  }
  const take = (key: string): Answer | Promise<Answer> => {
    let purse = purses.get(key)
    if (purse === undefined) {
      purse = { tokens: 0, retryMs: 0, asking: undefined }
      purses.set(key, purse)
    }
    return held(purse) ?? afterBorrowing(key, purse)
  }
  return { take, passed, awaited: false }
}
