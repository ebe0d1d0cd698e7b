import { checkActualCost } from '../../arguments.js'
import type { Decision } from '../../decision.js'
import type { FleetReservation } from '../fleet-limiter.js'

/** A reservation that books nothing: allowed or not as `decision` is, and whatever comes of it, `standing` is the answer. */
export function emptyFleetReservation(decision: Decision, standing: () => Promise<Decision>): FleetReservation {
  const settle = async (actualCost: number): Promise<Decision> => {
    checkActualCost(actualCost)
    return standing()
  }
  return { allowed: decision.allowed, waitMs: decision.retryAfterMs, decision, settle, cancel: standing }
}
