import type { Contender } from '../contender.js'
import { ALLOW, DENY, type Job } from '../job.js'
import { requireRival } from '../rivals.js'

interface Module {
  readonly RateLimiter: new (options: {
    tokensPerInterval: number
    interval: number | string
  }) => { tryRemoveTokens(count: number): boolean }
}

/** `limiter.tryRemoveTokens(1)`: it knows one key, and answers a boolean. */
export function limiter(job: Job): Contender {
  const { RateLimiter } = requireRival('limiter') as Module
  const policy =
    job.outcome === 'allow' ? { tokensPerInterval: ALLOW.limit, interval: 1_000 } : { tokensPerInterval: DENY.limit, interval: 'hour' }
  const one = new RateLimiter(policy)
  return { take: () => one.tryRemoveTokens(1), passed: (answer) => answer === true, awaited: false }
}
