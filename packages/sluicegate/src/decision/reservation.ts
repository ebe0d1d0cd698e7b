import { checkActualCost } from '../arguments.js'
import type { Answered, Awaitable, When } from '../awaitable.js'
import type { Decision } from './decision.js'

/** Tokens booked ahead, see {@link Limiter.reserve}. Over a store, `Reservation<'later'>`, it answers with promises. */
export interface Reservation<Time extends When = 'now'> {
  /** Whether they are booked; if not, nothing was charged. */
  readonly allowed: boolean
  /** Milliseconds from the booking until they may be spent, rounded up: 0 at once, `Infinity` when the cost can never pass. */
  readonly waitMs: number
  /** The state of the key right after the booking. */
  readonly decision: Decision
  /**
   * Corrects the cost once it is known: below the estimate the rest comes back as by {@link Reservation.cancel}, above it the key
   * goes into debt. A second call, or one after `cancel`, changes nothing. Never settled, the estimate stays charged.
   */
  settle(actualCost: number): Answered<Time, Decision>
  /**
   * Gives back what the reservation still holds, see the guide for how much that is. Once; after `settle` it changes nothing. This is also
   * what releases a place under `concurrency` once the work is done: settled, it would be held until its `ttl` is over.
   */
  cancel(): Answered<Time, Decision>
}

/** A reservation without a booking, allowed as `decision` is. `settle` and `cancel` return `state()`. */
export function emptyReservation(decision: Decision, state: () => Awaitable<Decision>): Reservation<When> {
  const settle = (actualCost: number): Awaitable<Decision> => {
    checkActualCost(actualCost)
    return state()
  }
  return { allowed: decision.allowed, waitMs: decision.retryAfterMs, decision, settle, cancel: state }
}
