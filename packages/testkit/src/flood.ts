import { createLimiter, type Decision, type Key, type LimiterStats, manualClock } from 'sluicegate'
import { type Admission, type Excess, firstOver } from './history/excess.js'
import { policyOf } from './kit.js'
import type { PolicySpec } from './oracle/oracle.js'
import { oracleFor } from './oracle/versioned-oracle.js'

/** What is flooded, and with how many keys. */
export interface FloodOptions {
  readonly distinctKeys: number
  readonly maxKeys: number
  /** Default a token bucket of 5 a second. */
  readonly spec?: PolicySpec
  /** What each take costs, default 1, and who is limited, by name. */
  readonly cost?: number
  readonly keyOf?: (name: string) => Key
  /** How long after each other they come, default one microsecond. */
  readonly usPerKey?: number
  /** Called about every `progressEvery` keys. */
  readonly onProgress?: (done: number, rssBytes: number) => void
  readonly progressEvery?: number
}

/** What came of it. */
export interface FloodResult {
  readonly newcomersPassed: number
  readonly abuserPassed: number
  /** What the abuser's policy allows in that time, to the token. */
  readonly abuserBudget: number
  readonly excess: Excess | undefined
  readonly stats: LimiterStats
  readonly memoryGrewBytes: number
  /** Of the process, since the table was first full. */
  readonly rssGrewBytes: number
}

/** With a key a microsecond its one token stays owed for 200 ms, so 200,000 new keys are in debt at any time. */
const POLICY = { algorithm: 'token-bucket', limit: 5, windowMs: 1000, burst: 5 } as const
const KEYS_PER_ABUSE = 100

/** Sends keys that never came before through a small table, while one abuser asks all the time. */
export function flood(options: FloodOptions): FloodResult {
  const { distinctKeys, maxKeys, spec = POLICY, cost = 1, usPerKey = 1, onProgress, progressEvery = 1_000_000 } = options
  const { keyOf = (name) => name } = options
  const clock = manualClock()
  const limiter = createLimiter(policyOf(spec), { maxKeys, clock })
  const oracle = oracleFor(spec)
  const { memoryBytes } = limiter.stats()
  const admissions: Admission[] = []
  const [abuser, take] = [keyOf('abuser'), (key: Key): Decision => limiter.take(key, cost)]
  let newcomersPassed = 0
  let abuserBudget = 0
  let rssFull = 0
  for (let i = 0; i < distinctKeys; i++) {
    const nowUs = i * usPerKey
    clock.set(nowUs / 1000)
    if (i % KEYS_PER_ABUSE === 0) {
      if (take(abuser).allowed) admissions.push({ atUs: nowUs, cost })
      if (oracle.take(abuser, cost, nowUs / 1000).allowed) abuserBudget++
    }
    if (take(keyOf(`newcomer:${i}`)).allowed) newcomersPassed++
    if (i === 3 * maxKeys) rssFull = process.memoryUsage.rss()
    if ((i + 1) % progressEvery === 0) onProgress?.(i + 1, process.memoryUsage.rss())
  }
  const stats = limiter.stats()
  return {
    newcomersPassed,
    abuserPassed: admissions.length,
    abuserBudget,
    excess: firstOver(spec, admissions),
    stats,
    memoryGrewBytes: stats.memoryBytes - memoryBytes,
    rssGrewBytes: process.memoryUsage.rss() - rssFull,
  }
}
