import type { Decision, DecisionSource } from '../decision.js'
import type { Permit } from '../permit.js'

/** What a permit holds, until it is given back. */
export interface Hold {
  /** False when it is nobody's any more. */
  release(): boolean
  renew(): boolean
  /** Gives so many tokens back and holds the rest. */
  shrink(tokens: number): boolean
}

/** What several permits hold together: when one of them is nobody's any more, the others are given back. */
export function holdOf(permits: readonly Permit[]): Hold {
  const release = (): boolean => permits.map((permit) => permit.release()).some((released) => released)
  return {
    release,
    renew: () => {
      const isRenewed = permits.map((permit) => permit.heartbeat()).every((renewed) => renewed)
      if (!isRenewed) release()
      return isRenewed
    },
    // Each part gives back its own.
    shrink: () => false,
  }
}

/** Gives a part of what a permit holds back: what a reservation was settled for is less than it booked. For the limiter alone. */
export let shrink: (permit: MemoryPermit, tokens: number) => void

/** A permit of a limiter in memory; without a hold, the answer to a take that was denied. */
export class MemoryPermit implements Permit {
  readonly allowed: boolean
  readonly limit: number
  readonly remaining: number
  readonly retryAfterMs: number
  readonly resetAfterMs: number
  readonly policy: string
  readonly source: DecisionSource
  declare readonly parts?: readonly Decision[]
  #hold: Hold | undefined

  static {
    shrink = (permit, tokens) => void permit.#hold?.shrink(tokens)
  }

  constructor({ allowed, limit, remaining, retryAfterMs, resetAfterMs, policy, source, parts }: Decision, hold?: Hold) {
    this.allowed = allowed
    this.limit = limit
    this.remaining = remaining
    this.retryAfterMs = retryAfterMs
    this.resetAfterMs = resetAfterMs
    this.policy = policy
    this.source = source
    if (parts !== undefined) this.parts = parts
    this.#hold = hold
  }

  release(): boolean {
    const released = this.#hold?.release() ?? false
    this.#hold = undefined
    return released
  }

  heartbeat(): boolean {
    const renewed = this.#hold?.renew() ?? false
    if (!renewed) this.#hold = undefined
    return renewed
  }

  [Symbol.dispose](): void {
    this.release()
  }
}
