import { coarseClock, preciseClock } from 'sluicegate'
import type { ContenderFactory } from './contender.js'
import { ALGORITHM_CONTENDERS, LOG_CONTENDERS } from './contenders/algorithms.js'
import { expressRateLimitStore } from './contenders/express-rate-limit.js'
import { limiter } from './contenders/limiter.js'
import { mapGcra } from './contenders/map-gcra.js'
import { rateLimiterFlexible } from './contenders/rate-limiter-flexible.js'
import { bound, boundGcra, keyed } from './contenders/sluicegate.js'

/** Everybody who decides in this process, by the name that a job gives. */
export const CONTENDERS = {
  'sluicegate, precise': (job) => keyed(job, preciseClock()),
  'sluicegate, coarse': (job) => keyed(job, coarseClock()),
  'sluicegate bound, precise': (job) => bound(job, preciseClock()),
  'sluicegate bound, coarse': (job) => bound(job, coarseClock()),
  'sluicegate bound gcra, coarse': (job) => boundGcra(job, coarseClock()),
  'plain Map': (job) => mapGcra(job, () => performance.now()),
  'plain Map, coarse': (job) => mapGcra(job, coarseNow()),
  'rate-limiter-flexible': (job) => rateLimiterFlexible(job),
  'rate-limiter-flexible, no prefix': (job) => rateLimiterFlexible(job, { keyPrefix: '' }),
  'express-rate-limit store': (job) => expressRateLimitStore(job),
  limiter: (job) => limiter(job),
  ...ALGORITHM_CONTENDERS,
  ...LOG_CONTENDERS,
} as const satisfies Record<string, ContenderFactory>

export type ContenderName = keyof typeof CONTENDERS

function coarseNow(): () => number {
  const clock = coarseClock()
  return () => clock.nowMs()
}
