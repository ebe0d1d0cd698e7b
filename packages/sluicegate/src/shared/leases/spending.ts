import type { Unspent } from '../../lease/held-tokens.js'
import type { Booked } from '../backend.js'

/** What one leased take has spent: tokens of grants, or a charge at the backend alone. */
export class Spending {
  /** The charge at the backend. */
  booked: Booked | undefined
  private readonly parts: Unspent[][] = []

  /** The tokens of grants, in the order in which they were spent, of one policy of `allOf`. */
  drawnOf(part: number): Unspent[] {
    let drawn = this.parts[part]
    if (drawn === undefined) {
      drawn = []
      this.parts[part] = drawn
    }
    return drawn
  }
}
