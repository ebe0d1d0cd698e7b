import { checkActualCost } from '../../arguments.js'
import type { Decision } from '../../decision.js'
import type { FleetReservation } from '../fleet-limiter.js'

/** A reservation that holds nothing: allowed as `decision` is; `settle` and `cancel` answer with `standing`. */
export function emptyFleetReservation(decision: Decision, standing: () => Promise<Decision>): FleetReservation {
  const settle = async (actualCost: number): Promise<Decision> => {
    checkActualCost(actualCost)
    return standing()
  }
  return { allowed: decision.allowed, waitMs: decision.retryAfterMs, decision, settle, cancel: standing }
}
