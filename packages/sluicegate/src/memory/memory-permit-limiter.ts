import type { Decision } from '../decision/decision.js'
import { type Permit, PermitDecision } from '../decision/permit.js'
import type { Policy } from '../policy/policy.js'
import type { MemoryBooking } from './memory-bookings.js'
import { MemoryDecisions } from './memory-decisions.js'
import { MemoryLimiter, type MemoryLimiterParts } from './memory-limiter.js'
import { closedCore } from './open-core.js'

/** Decisions of a concurrency limit: takes that pass have permits. */
class PermitDecisions extends MemoryDecisions {
  override take(key: string, low: number, high: number, cost: number): Decision {
    const decision = super.take(key, low, high, cost)
    return decision instanceof MemoryPermit ? decision : this.withPermit(decision, key, low, high, cost)
  }

  override takeAt(nowUs: number, key: string, low: number, high: number, cost: number): Decision {
    const decision = super.takeAt(nowUs, key, low, high, cost)
    return decision instanceof MemoryPermit ? decision : this.withPermit(decision, key, low, high, cost)
  }

  override withPermit(decision: Decision, key: string, low: number, high: number, cost: number): Permit {
    if (!decision.allowed) return new MemoryPermit(decision)
    const given = this.opened.core.givenPermit()
    let untilUs = this.opened.core.givenUntilUs()
    const changed = (renew: boolean, tokens: number): boolean => {
      const { core } = this.opened
      // A `using` block may end after its limiter is closed. That is no error: the permit expires.
      if (core === closedCore) return false
      if (this.answered(core.changePermit(low, high, this.nowUs(), renew, given, untilUs, tokens), key) === 0) return false
      untilUs = core.givenUntilUs()
      if (tokens > 0) this.onRelease(key)
      return true
    }
    const hold: Hold = {
      release: () => changed(false, cost),
      renew: () => changed(true, 0),
      shrink: (tokens) => changed(false, tokens),
    }
    return new MemoryPermit(decision, hold)
  }
}

/** Concurrency in shared memory: takes return permits, and waiters queue for them. */
export class MemoryPermitLimiter extends MemoryLimiter<Permit> {
  constructor(parts: MemoryLimiterParts, policy?: Policy) {
    super(parts, policy, PermitDecisions)
  }

  override redeem(booking: MemoryBooking<Permit>): Permit {
    return booking.decision
  }

  override giveBack(booking: MemoryBooking<Permit>, tokens: number): Decision {
    const permit = booking.decision
    if (tokens >= booking.cost) permit.release()
    else if (permit instanceof MemoryPermit) shrink(permit, tokens)
    return this.peek(booking.key)
  }

  override refuse(key: string, cost: number): Permit {
    return new MemoryPermit(super.refuse(key, cost))
  }
}

/** The tokens that a permit holds until its release. */
export interface Hold {
  /** False if the permit has expired or was released. */
  release(): boolean
  renew(): boolean
  /** Releases `tokens` and holds the rest. */
  shrink(tokens: number): boolean
}

/** The hold of several permits: when one of them has expired, the others are released. */
export function jointHold(permits: readonly Permit[]): Hold {
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

/** Releases a part of a permit, when a reservation is settled below its estimate. For the limiter alone. */
let shrink: (permit: MemoryPermit, tokens: number) => void

/** A permit of a limiter in memory. A denied permit has no hold. */
export class MemoryPermit extends PermitDecision implements Permit {
  #hold: Hold | undefined

  static {
    shrink = (permit, tokens) => void permit.#hold?.shrink(tokens)
  }

  constructor(decision: Decision, hold?: Hold) {
    super(decision)
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

  async [Symbol.asyncDispose](): Promise<void> {
    this.release()
  }
}
