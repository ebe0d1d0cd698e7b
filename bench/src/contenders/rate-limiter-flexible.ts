import type { Contender } from '../contender.js'
import { ALLOW, DENY, type Job, RIVAL_WINDOW_MS } from '../job.js'
import { requireRival } from '../rivals.js'

interface Module {
  readonly RateLimiterMemory: new (options: {
    points: number
    duration: number
    keyPrefix?: string
  }) => {
    consume(key: string): Promise<{ readonly remainingPoints: number }>
  }
}

/** `await limiter.consume(key)`, which rejects when denied; with its default prefix for keys, or with none. */
export function rateLimiterFlexible(job: Job, options: { keyPrefix?: string } = {}): Contender {
  const { RateLimiterMemory } = requireRival('rate-limiter-flexible') as Module
  const policy =
    job.outcome === 'allow' ? { points: ALLOW.limit, duration: RIVAL_WINDOW_MS / 1000 } : { points: DENY.limit, duration: 3600 }
  const limiter = new RateLimiterMemory({ ...policy, ...options })
  return { take: (key) => limiter.consume(key), passed: () => true, awaited: true }
}
