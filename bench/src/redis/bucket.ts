/** The policy of all contenders: this many tokens at once, this many a second, for each key. */
export const BURST = 1_000
export const RATE_PER_S = 500

/** The microseconds in which a token comes back; a key that owes `burstUs` has spent its burst. */
export const TOKEN_US = 1_000_000 / RATE_PER_S
export const CAPACITY_US = BURST * TOKEN_US

/** What a contender written for this answers. */
export interface Answer {
  readonly allowed: boolean
  readonly retryAfterMs: number
}

export const ALLOWED: Answer = { allowed: true, retryAfterMs: 0 }

export function deniedFor(us: number): Answer {
  return { allowed: false, retryAfterMs: Math.ceil(us / 1000) }
}

export function passed(answer: unknown): boolean {
  return (answer as Answer).allowed
}

/** GCRA in the client: the arrival time after one more token; undefined when it does not conform. */
export function afterTake(arrivalUs: number, nowUs: number): number | undefined {
  const nextUs = Math.max(arrivalUs, nowUs) + TOKEN_US
  return nextUs - nowUs > CAPACITY_US ? undefined : nextUs
}

/** Until one more token conforms. */
export function untilFreeUs(arrivalUs: number, nowUs: number): number {
  return Math.max(0, arrivalUs + TOKEN_US - CAPACITY_US - nowUs)
}

/** For how long a state is worth keeping. */
export function lifeMs(arrivalUs: number, nowUs: number): number {
  return Math.ceil((arrivalUs - nowUs) / 1000) + 1
}

/** This machine's wall clock. */
export function wallUs(): number {
  return Math.round((performance.timeOrigin + performance.now()) * 1000)
}

/**
 * GCRA as one would write it in Lua: one value a key, read, compared, written back.
 *
 * KEYS 1: the key; ARGV: microseconds a token, microseconds of the burst, and what `now` needs. Answers whether it passed, and otherwise
 * after how many microseconds it would.
 */
export function bucketScript(now: string): string {
  return `
local token, capacity = tonumber(ARGV[1]), tonumber(ARGV[2])
local now = ${now}
local arrival = math.max(tonumber(redis.call('GET', KEYS[1]) or 0), now) + token
if arrival - now > capacity then return { 0, arrival - now - capacity } end
redis.call('SET', KEYS[1], string.format('%.0f', arrival), 'PX', math.ceil((arrival - now) / 1000) + 1)
return { 1, 0 }
`
}

/** The server's clock, in microseconds. */
export const SERVER_NOW = "(function() local time = redis.call('TIME') return time[1] * 1000000 + time[2] end)()"
