import { type Clock, createLimiter, type Decision, gcra, type Limiter, tokenBucket } from 'sluicegate'
import type { Contender } from '../contender.js'
import { ALLOW, DENY, type Job } from '../job.js'

const passed = (answer: unknown): boolean => (answer as Decision).allowed

/** `limiter.take(key)`. */
export function keyed(job: Job, clock: Clock): Contender {
  const limiter = limiterFor(job, clock)
  return { take: (key) => limiter.take(key), passed, awaited: false, memoryBytes: () => limiter.stats().memoryBytes }
}

/** `limiter.key(key)`, once, and `bound.take()`. */
export function bound(job: Job, clock: Clock): Contender {
  const key = limiterFor(job, clock).key('user-0')
  return { take: () => key.take(), passed, awaited: false }
}

/** A bound key whose policy is held by the arrival-time word, not the packed one. */
export function boundGcra(job: Job, clock: Clock): Contender {
  const key = createLimiter(gcra({ ...ALLOW, burst: ALLOW.limit }), { maxKeys: job.keys, clock }).key('user-0')
  return { take: () => key.take(), passed, awaited: false }
}

function limiterFor(job: Job, clock: Clock): Limiter {
  return createLimiter(tokenBucket(job.outcome === 'allow' ? ALLOW : DENY), { maxKeys: job.keys, clock })
}
