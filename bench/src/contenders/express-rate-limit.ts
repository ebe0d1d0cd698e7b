import type { Contender } from '../contender.js'
import { ALLOW, DENY, type Job, RIVAL_WINDOW_MS } from '../job.js'
import { requireRival } from '../rivals.js'

interface Store {
  init(options: { windowMs: number }): void
  increment(key: string): Promise<{ readonly totalHits: number }>
}

interface Module {
  readonly MemoryStore: new () => Store
}

/** `await store.increment(key)` and the comparison that its middleware makes: a counter, no decision. */
export function expressRateLimitStore(job: Job): Contender {
  const { MemoryStore } = requireRival('express-rate-limit') as Module
  const limit = job.outcome === 'allow' ? ALLOW.limit : DENY.limit
  const store = new MemoryStore()
  store.init({ windowMs: job.outcome === 'allow' ? RIVAL_WINDOW_MS : 3_600_000 })
  const passed = (answer: unknown): boolean => (answer as { totalHits: number }).totalHits <= limit
  return { take: (key) => store.increment(key), passed, awaited: true }
}
