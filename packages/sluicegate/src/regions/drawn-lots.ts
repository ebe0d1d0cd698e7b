import type { Lot } from '../shared/region-pool.js'

/** How many leases of a process are remembered, and for how long after their tokens ended: beyond that these stay charged. */
const MOST_LOTS = 100_000
const KEPT_US = 60_000_000
/** Looked at for each new one, so that ended ones do not add up. */
const LOOKED_AT = 2

/** Where tokens go back that this process drew for its leases: to the lot of the oldest of them, by the id of the lease. Ids are below 0. */
export class DrawnLots {
  private readonly byId = new Map<number, Lot>()
  private last = 0

  /** @param nowUs by the clock of the region's store. */
  add(lot: Lot, nowUs: number): number {
    const { byId } = this
    let looked = 0
    for (const [id, { endUs }] of byId) {
      if (endUs + KEPT_US < nowUs || byId.size >= MOST_LOTS) byId.delete(id)
      if (++looked >= LOOKED_AT) break
    }
    byId.set(--this.last, lot)
    return this.last
  }

  of(id: number): Lot | undefined {
    return this.byId.get(id)
  }
}
