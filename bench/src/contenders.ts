import { type Clock, coarseClock, createLimiter, type Decision, gcra, type Limiter, preciseClock, tokenBucket } from 'sluicegate'
import { ALGORITHM_CONTENDERS, LOG_CONTENDERS } from './contenders/algorithms.js'
import type { Contender, ContenderFactory } from './job.js'
import { ALLOW, DENY, type Job, RIVAL_WINDOW_MS } from './job.js'
import { requireRival } from './rivals.js'

interface FlexibleModule {
  readonly RateLimiterMemory: new (options: {
    points: number
    duration: number
    keyPrefix?: string
  }) => {
    consume(key: string): Promise<{ readonly remainingPoints: number }>
  }
}

/** `await limiter.consume(key)`, which rejects when denied; with its default prefix for keys, or with none. */
function rateLimiterFlexible(job: Job, options: { keyPrefix?: string } = {}): Contender {
  const { RateLimiterMemory } = requireRival('rate-limiter-flexible') as FlexibleModule
  const policy =
    job.outcome === 'allow' ? { points: ALLOW.limit, duration: RIVAL_WINDOW_MS / 1000 } : { points: DENY.limit, duration: 3600 }
  const limiter = new RateLimiterMemory({ ...policy, ...options })
  return { take: (key) => limiter.consume(key), passed: () => true, awaited: true }
}

interface LimiterModule {
  readonly RateLimiter: new (options: {
    tokensPerInterval: number
    interval: number | string
  }) => { tryRemoveTokens(count: number): boolean }
}

/** `limiter.tryRemoveTokens(1)`: it knows one key, and answers a boolean. */
function limiter(job: Job): Contender {
  const { RateLimiter } = requireRival('limiter') as LimiterModule
  const policy =
    job.outcome === 'allow' ? { tokensPerInterval: ALLOW.limit, interval: 1_000 } : { tokensPerInterval: DENY.limit, interval: 'hour' }
  const one = new RateLimiter(policy)
  return { take: () => one.tryRemoveTokens(1), passed: (answer) => answer === true, awaited: false }
}

const passed = (answer: unknown): boolean => (answer as Decision).allowed

/** `limiter.take(key)`. */
function keyed(job: Job, clock: Clock): Contender {
  const limiter = limiterFor(job, clock)
  return { take: (key) => limiter.take(key), passed, awaited: false, memoryBytes: () => limiter.stats().memoryBytes }
}

/** `limiter.key(key)`, once, and `bound.take()`. */
function bound(job: Job, clock: Clock): Contender {
  const key = limiterFor(job, clock).key('user-0')
  return { take: () => key.take(), passed, awaited: false }
}

/** A bound key whose policy is held by the arrival-time word, not the packed one. */
function boundGcra(job: Job, clock: Clock): Contender {
  const key = createLimiter(gcra({ ...ALLOW, burst: ALLOW.limit }), { maxKeys: job.keys, clock }).key('user-0')
  return { take: () => key.take(), passed, awaited: false }
}

function limiterFor(job: Job, clock: Clock): Limiter {
  return createLimiter(tokenBucket(job.outcome === 'allow' ? ALLOW : DENY), { maxKeys: job.keys, clock })
}

interface Cell {
  tatMs: number
}

/**
 * What one would write by hand for one thread: GCRA in doubles over a Map, one mutable record a key, and an answer of the four
 * numbers that a response needs. No limit on memory, nothing is ever forgotten, keys are not checked.
 */
function mapGcra(job: Job, nowMs: () => number): Contender {
  const { limit, window, burst } = job.outcome === 'allow' ? ALLOW : DENY
  const intervalMs = (window === '1s' ? 1_000 : 3_600_000) / limit
  const toleranceMs = intervalMs * burst
  const cells = new Map<string, Cell>()
  const take = (key: string) => {
    const now = nowMs()
    let cell = cells.get(key)
    if (cell === undefined) {
      cell = { tatMs: now }
      cells.set(key, cell)
    }
    const next = Math.max(cell.tatMs, now) + intervalMs
    const left = toleranceMs - (next - now)
    if (left < 0) return { allowed: false, remaining: 0, retryAfterMs: Math.ceil(-left), resetAfterMs: Math.ceil(cell.tatMs - now) }
    cell.tatMs = next
    return { allowed: true, remaining: Math.floor(left / intervalMs), retryAfterMs: 0, resetAfterMs: Math.ceil(next - now) }
  }
  return { take, passed: (answer) => (answer as ReturnType<typeof take>).allowed, awaited: false }
}

interface Store {
  init(options: { windowMs: number }): void
  increment(key: string): Promise<{ readonly totalHits: number }>
}

interface Module {
  readonly MemoryStore: new () => Store
}

/** `await store.increment(key)` and the comparison that its middleware makes: a counter, no decision. */
function expressRateLimitStore(job: Job): Contender {
  const { MemoryStore } = requireRival('express-rate-limit') as Module
  const limit = job.outcome === 'allow' ? ALLOW.limit : DENY.limit
  const store = new MemoryStore()
  store.init({ windowMs: job.outcome === 'allow' ? RIVAL_WINDOW_MS : 3_600_000 })
  const passed = (answer: unknown): boolean => (answer as { totalHits: number }).totalHits <= limit
  return { take: (key) => store.increment(key), passed, awaited: true }
}

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
