import type { Decision } from '../decision.js'
import type { Permit } from '../permit.js'
import { closedCore } from './core.js'
import type { MemoryBooking } from './memory-bookings.js'
import { MemoryLimiter } from './memory-limiter.js'
import { type Hold, MemoryPermit, shrink } from './memory-permit.js'

/** Concurrency in shared memory: its answers are permits, and those who wait for one stand in line. */
export class MemoryPermitLimiter extends MemoryLimiter<Permit> {
  override takeHashed(key: string, low: number, high: number, cost: number): Decision {
    const decision = super.takeHashed(key, low, high, cost)
    return decision instanceof MemoryPermit ? decision : this.held(decision, key, low, high, cost)
  }

  override answer(booking: MemoryBooking<Permit>): Permit {
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

  protected override held(decision: Decision, key: string, low: number, high: number, cost: number): Permit {
    if (!decision.allowed) return new MemoryPermit(decision)
    const given = this.opened.core.givenPermit()
    let untilUs = this.opened.core.givenUntilUs()
    const changed = (renew: boolean, tokens: number): boolean => {
      const { core } = this.opened
      // What ends after its limiter, as a block with `using` may, is no fault: the permit comes back by itself.
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
