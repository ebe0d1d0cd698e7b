import type { Decision } from './decision.js'
import type { Descriptor, MemoryBooking } from './memory-decisions.js'
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
    const permit = booking.decision
    if (tokens >= booking.cost) permit.release()
    else if (permit instanceof MemoryPermit) permit.shrink(tokens)
    return this.peek(booking.key)
  }

  override refuse(key: string, cost: number): Permit {
    return new MemoryPermit(super.refuse(key, cost))
  }

  override stageHashed(into: Descriptor, key: string, low: number, high: number, cost: number): MemoryBooking | undefined {
    const booking = super.stageHashed(into, key, low, high, cost)
    return booking && { ...booking, decision: this.permit(booking.decision, key, low, high, cost) }
  }

  private permit(decision: Decision, key: string, low: number, high: number, cost: number): Permit {
    if (!decision.allowed) return new MemoryPermit(decision)
    const given = this.opened.core.givenPermit()
    let untilUs = this.opened.core.givenUntilUs()
    const changed = (renew: boolean, tokens: number): boolean => {
      const { core } = this.opened
      const until = this.answered(core.changePermit(low, high, this.nowUs(), renew, given, untilUs, tokens), key)
      if (until === 0) return false
      untilUs = until
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
