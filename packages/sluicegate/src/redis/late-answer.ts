import { holdsPermits } from '../empty-permit.js'
import type { StoreAnswer, StoreRequest, StoreVerb } from './store.js'
import { waitUsIn } from './store-decision.js'

/** A call that takes back what another did. */
export interface Undoing {
  readonly verb: StoreVerb
  readonly requests: readonly StoreRequest[]
}

/**
 * How to take back what was done for a caller who had been told that there was no answer: a booking, or a permit, which nobody holds.
 * Tokens of a take stay spent: what of them flowed back since is not known, and whoever gave them back could give too much.
 */
export function undoingOf(verb: StoreVerb, requests: readonly StoreRequest[], { nowUs = 0, standings }: StoreAnswer): Undoing | undefined {
  if (!standings.every(({ done }) => done)) return undefined
  if (verb === 'take') {
    const permits = requests.filter(({ form }) => holdsPermits(form.policy))
    return permits.length === 0 ? undefined : { verb: 'release', requests: permits }
  }
  if (verb !== 'reserve') return undefined
  const bookings = requests.map(({ mostUs, ...request }, i) => {
    const standing = standings[i] as StoreAnswer['standings'][number]
    // Of several nothing is booked ahead.
    const waitUs = requests.length === 1 ? waitUsIn(request.form, standing) : 0
    return { ...request, booking: { cost: request.tokens, bookedUs: nowUs, atUs: nowUs + waitUs, debt: standing.debt } }
  })
  return { verb: 'cancel', requests: bookings }
}
