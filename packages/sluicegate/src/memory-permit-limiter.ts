import type { Decision } from './decision.js'
import type { MemoryBooking } from './memory-decisions.js'
import { MemoryLimiter } from './memory-limiter.js'
import { type Hold, MemoryPermit } from './memory-permit.js'
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

  override stageHashed(descriptor: number, key: string, low: number, high: number, nowUs: number, cost: number): MemoryBooking | undefined {
    const booking = super.stageHashed(descriptor, key, low, high, nowUs, cost)
    return booking && { ...booking, decision: this.permit(booking.decision, key, low, high, cost) }
  }

  private permit(decision: Decision, key: string, low: number, high: number, cost: number): Permit {
    if (!decision.allowed) return new MemoryPermit(decision)
    const slot = this.opened.core.givenSlot()
    let untilUs = this.opened.core.givenUntilUs()
    const change = (isRelease: boolean): number =>
      this.answered(this.opened.core.changePermit(low, high, this.nowUs(), isRelease, slot, untilUs, cost), key)
    const hold: Hold = {
      release: () => {
        const released = change(true) > 0
        if (released) this.onRelease(key)
        return released
      },
      renew: () => {
        const until = change(false)
        if (until > 0) untilUs = until
        return until > 0
      },
    }
    return new MemoryPermit(decision, hold)
  }
}
