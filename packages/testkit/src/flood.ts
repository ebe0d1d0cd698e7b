import { createLimiter, type LimiterStats, manualClock, tokenBucket } from 'sluicegate'
import type { Admission, Excess } from './history/admission.js'
import { firstExcess } from './history/rate-history.js'

/** What is flooded, and with how many keys. */
export interface FloodOptions {
  readonly distinctKeys: number
  readonly maxKeys: number
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

const POLICY = { limit: 5, windowMs: 1000, burst: 5 }
/** A key a microsecond: its one token stays owed for 200 ms, so 200,000 newcomers are in debt at any time. */
const US_PER_KEY = 1
const KEYS_PER_ABUSE = 100

/** Sends keys that never came before through a small table, one a microsecond, while one abuser asks all the time. */
export function flood({ distinctKeys, maxKeys, onProgress, progressEvery = 1_000_000 }: FloodOptions): FloodResult {
  const clock = manualClock()
  const limiter = createLimiter(tokenBucket({ limit: POLICY.limit, window: POLICY.windowMs, burst: POLICY.burst }), { maxKeys, clock })
  const { memoryBytes } = limiter.stats()
  const admissions: Admission[] = []
  let newcomersPassed = 0
  let rssFull = 0
  for (let i = 0; i < distinctKeys; i++) {
    const nowUs = i * US_PER_KEY
    clock.set(nowUs / 1000)
    if (i % KEYS_PER_ABUSE === 0 && limiter.take('abuser').allowed) admissions.push({ atUs: nowUs, cost: 1 })
    if (limiter.take(`newcomer:${i}`).allowed) newcomersPassed++
    if (i === 3 * maxKeys) rssFull = process.memoryUsage.rss()
    if ((i + 1) % progressEvery === 0) onProgress?.(i + 1, process.memoryUsage.rss())
  }
  const stats = limiter.stats()
  const lastAbuseUs = Math.floor((distinctKeys - 1) / KEYS_PER_ABUSE) * KEYS_PER_ABUSE * US_PER_KEY
  return {
    newcomersPassed,
    abuserPassed: admissions.length,
    abuserBudget: POLICY.burst + Math.floor((POLICY.limit * lastAbuseUs) / (POLICY.windowMs * 1000)),
    excess: firstExcess(POLICY, admissions),
    stats,
    memoryGrewBytes: stats.memoryBytes - memoryBytes,
    rssGrewBytes: process.memoryUsage.rss() - rssFull,
  }
}
