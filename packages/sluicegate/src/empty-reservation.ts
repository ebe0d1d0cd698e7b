import { checkActualCost } from './arguments.js'
import type { Decision } from './decision.js'
import type { Reservation } from './reservation.js'

/** A reservation that books nothing: allowed or not as `decision` is, and whatever comes of it, `standing` is the answer. */
export function emptyReservation(decision: Decision, standing: () => Decision): Reservation {
  const settle = (actualCost: number): Decision => {
    checkActualCost(actualCost)
    return standing()
  }
  return { allowed: decision.allowed, waitMs: decision.retryAfterMs, decision, settle, cancel: standing }
}
