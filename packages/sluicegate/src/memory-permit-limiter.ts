import type { Decision } from './decision.js'
import type { MemoryBooking } from './memory-decisions.js'
import { MemoryLimiter } from './memory-limiter.js'
import { MemoryPermit } from './memory-permit.js'
import type { Permit } from './permit.js'

/** Concurrency in shared memory: its answers are permits, and those who wait for one stand in line. */
export class MemoryPermitLimiter extends MemoryLimiter<Permit> {
  override takeBound(key: string, low: number, high: number, cost: number): Permit {
    if (this.waiting.queued > 0 && this.waiting.isQueued(key)) return this.refuse(key, cost)
    return this.permit(super.takeBound(key, low, high, cost), key, low, high, cost)
  }

  override book(key: string, cost: number, mostMs: number): MemoryBooking<Permit> {
    const booking = super.book(key, cost, mostMs)
    return { ...booking, decision: this.permit(booking.decision, key, booking.low, booking.high, booking.cost) }
  }

  override answer(booking: MemoryBooking<Permit>): Permit {
    return booking.decision
  }

  override giveBack(booking: MemoryBooking<Permit>, tokens: number): Decision {
    // A permit is one piece: what is left of it when a part comes back is still in use.
    if (tokens >= booking.cost) booking.decision.release()
    return this.peek(booking.key)
  }

  override refuse(key: string, cost: number): Permit {
    return new MemoryPermit(super.refuse(key, cost))
  }

  /** Asks the core about a permit: when it expires now, or 1; 0 when it was nobody's any more. */
  changePermit(permit: { key: string; low: number; high: number }, isRelease: boolean, slot: number, untilUs: number, cost: number): number {
    const { key, low, high } = permit
    const answer = this.answered(this.opened.core.changePermit(low, high, this.nowUs(), isRelease, slot, untilUs, cost), key)
    if (isRelease && answer > 0 && this.waiting.queued > 0) this.waiting.released(key)
    return answer
  }

  private permit(decision: Decision, key: string, low: number, high: number, cost: number): Permit {
    if (!decision.allowed) return new MemoryPermit(decision)
    const { core } = this.opened
    return new MemoryPermit(decision, { limiter: this, key, low, high, cost, slot: core.givenSlot(), untilUs: core.givenUntilUs() })
  }
}
