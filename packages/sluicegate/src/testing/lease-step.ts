import type { StoreLease } from '../redis/store.js'

/** How a take came out, and until the key is as good as new. */
export interface StepTake {
  readonly allowed: boolean
  readonly untilNewUs: number
}

/** What was handed out, as `lua/scripts/lease.lua` says it. */
export type Handed = Pick<StoreLease, 'ready' | 'later' | 'laterUs' | 'endUs'>

export const NOTHING: Handed = { ready: 0, later: 0, laterUs: 0, endUs: 0 }

/**
 * One key at the authority: what `lua/` does for leases and takes, on a clock that never steps back, without blocks and other verbs. Twin of
 * `lua/scripts/lease.lua`, of its forms of the steps they name.
 */
export abstract class LeaseStep {
  protected abstract read(nowUs: number): void
  protected abstract debtAt(nowUs: number): number
  protected abstract leased(nowUs: number, want: number, least: number, horizonUs: number): Handed
  protected abstract taken(nowUs: number, cost: number): boolean
  protected abstract returned(tokens: number, leasedUs: number): void
  protected abstract untilNewUs(nowUs: number): number
  protected abstract freeUs(nowUs: number, cost: number): number

  lease(nowUs: number, want: number, least: number, horizonUs: number): StoreLease {
    this.read(nowUs)
    const debt = this.debtAt(nowUs)
    const handed = this.leased(nowUs, want, least, horizonUs)
    return { ...handed, nowUs, debt, blockedUs: 0, untilFreeUs: this.freeUs(nowUs, least), untilNewUs: this.untilNewUs(nowUs) }
  }

  take(nowUs: number, cost: number): StepTake {
    this.read(nowUs)
    return { allowed: this.taken(nowUs, cost), untilNewUs: this.untilNewUs(nowUs) }
  }

  /** What nobody spends of what was leased at a time; nothing where that is not the same any more. */
  giveBack(nowUs: number, tokens: number, leasedUs: number): void {
    this.read(nowUs)
    this.returned(tokens, leasedUs)
  }

  /** Until so many would pass. */
  untilFreeUs(nowUs: number, cost: number): number {
    this.read(nowUs)
    return this.freeUs(nowUs, cost)
  }
}
