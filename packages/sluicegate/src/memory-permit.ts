import type { Decision, DecisionSource } from './decision.js'
import type { MemoryPermitLimiter } from './memory-permit-limiter.js'
import type { Permit } from './permit.js'

/** What a permit holds: its place in the core's memory. */
export interface Held {
  readonly limiter: Pick<MemoryPermitLimiter, 'changePermit'>
  readonly key: string
  readonly low: number
  readonly high: number
  readonly cost: number
  readonly slot: number
  untilUs: number
}

/** A permit of a limiter in memory; without anything held, the answer to a take that was denied. */
export class MemoryPermit implements Permit {
  readonly allowed: boolean
  readonly limit: number
  readonly remaining: number
  readonly retryAfterMs: number
  readonly resetAfterMs: number
  readonly policy: string
  readonly source: DecisionSource
  #held: Held | undefined

  constructor({ allowed, limit, remaining, retryAfterMs, resetAfterMs, policy, source }: Decision, held?: Held) {
    this.allowed = allowed
    this.limit = limit
    this.remaining = remaining
    this.retryAfterMs = retryAfterMs
    this.resetAfterMs = resetAfterMs
    this.policy = policy
    this.source = source
    this.#held = held
  }

  release(): boolean {
    const held = this.#held
    if (held === undefined) return false
    const { limiter, slot, untilUs, cost } = held
    const released = limiter.changePermit(held, true, slot, untilUs, cost) > 0
    this.#held = undefined
    return released
  }

  heartbeat(): boolean {
    const held = this.#held
    if (held === undefined) return false
    const { limiter, slot, untilUs, cost } = held
    const until = limiter.changePermit(held, false, slot, untilUs, cost)
    if (until > 0) held.untilUs = until
    else this.#held = undefined
    return until > 0
  }

  [Symbol.dispose](): void {
    this.release()
  }
}
