import { createLimiter, type Limiter } from 'sluicegate'
import type { Form } from './forms.js'

/** A limiter of the library that is asked at given times, and what it believed of the source at the last of them. */
export class Counter {
  /** Whether the last request passed. */
  allowed = false
  /** What its source was taken to have in the window before it, in requests. */
  before = 0
  private readonly limiter: Limiter
  private readonly names: readonly string[]
  private readonly limit: number
  private readonly cost: number
  private nowUs = 0

  constructor(form: Form, limit: number, windowMs: number, sources: number) {
    const policy = form.policy(limit, windowMs)
    this.limiter = createLimiter(policy, { maxKeys: sources, clock: { nowMs: () => this.nowUs / 1000 } })
    this.names = Array.from({ length: sources }, (_, source) => `source ${source}`)
    this.limit = policy.limit
    this.cost = form.tokensPerRequest
  }

  ask(source: number, nowUs: number): void {
    this.nowUs = nowUs
    const { allowed, remaining } = this.limiter.take(this.names[source] as string, this.cost)
    this.allowed = allowed
    this.before = (this.limit - remaining) / this.cost - (allowed ? 1 : 0)
  }

  /** @throws when a source was forgotten or turned away: what is found then is not about the algorithm. */
  close(): void {
    const { evictions, refusals } = this.limiter.stats()
    if (evictions + refusals > 0) throw new Error(`${evictions} sources were forgotten, ${refusals} turned away`)
    this.limiter.close()
  }
}
