import type { StepLease } from '../../../sluicegate/dist/shared/steps/step-answers.js'

/** The result of a take, and the time until the key is full. */
export interface StepTake {
  readonly allowed: boolean
  readonly untilNewUs: number
}

/** What was handed out, as `lua/scripts/lease.lua` says it. */
export type Handed = Pick<StepLease, 'tokens' | 'endUs'>

export const NOTHING: Handed = { tokens: 0, endUs: 0 }

/** How a key counts under several numbers what passes under one of them. */
export interface RecordRules {
  /** Whether tokens count for others until they are spent at the latest. */
  readonly countsLent: boolean
  /** How much of a rate's debt a lease leaves at least, of what flows back while it lasts. */
  leftBy(lent: number): number
  /** The debt that a take of a rate goes by. */
  takenFrom(debt: number, lent: number): number
  /** Whether new numbers begin as the largest of the others say, and not as those written last. */
  readonly beginsWithLargest: boolean
}

/** Those of `lua/steps/records.lua`. */
export const SOUND_RECORDS: RecordRules = {
  countsLent: true,
  leftBy: (lent) => lent,
  takenFrom: (debt) => debt,
  beginsWithLargest: true,
}

/**
 * One key at the authority, under one kind of numbers: what `lua/` does for leases and takes, on a clock that never steps back, without blocks and other verbs. Twin of
 * `lua/scripts/lease.lua`, of its forms of the steps they name.
 */
export abstract class LeaseStep {
  /** The most tokens that pass at once. */
  abstract get whole(): number
  abstract read(nowUs: number): void
  /** Whether the key is full at the time read last. */
  abstract isOver(): boolean
  /** Begins with what one of the others says. */
  abstract carried(other: LeaseStep, others: readonly LeaseStep[]): void
  /** Counts what passed under the numbers of `by`, which met `others`. */
  abstract filled(tokens: number, by: LeaseStep, others: readonly LeaseStep[], isLease: boolean): void
  /** Counts tokens at the time read last, whatever is left. */
  abstract charge(tokens: number): void
  /** Counts what came back under other numbers. */
  relieved(_tokens: number): void {}
  protected abstract debtAt(nowUs: number): number
  protected abstract leased(nowUs: number, want: number, least: number): Handed
  protected abstract taken(nowUs: number, cost: number): boolean
  protected abstract returned(tokens: number, leasedUs: number): void
  protected abstract untilNewUs(nowUs: number): number
  protected abstract freeUs(nowUs: number, cost: number): number

  protected left(nowUs: number): number {
    return Math.max(0, this.whole - this.debtAt(nowUs))
  }

  /** @param _others what else is known of the key. */
  lease(nowUs: number, want: number, least: number, _others?: readonly LeaseStep[]): StepLease {
    this.read(nowUs)
    const debt = this.debtAt(nowUs)
    const handed = this.leased(nowUs, want, least)
    return { ...handed, nowUs, debt, blockedUs: 0, untilFreeUs: this.freeUs(nowUs, least), untilNewUs: this.untilNewUs(nowUs) }
  }

  take(nowUs: number, cost: number): StepTake {
    this.read(nowUs)
    return { allowed: this.taken(nowUs, cost), untilNewUs: this.untilNewUs(nowUs) }
  }

  /** Returns unspent tokens of a lease granted at a time; none if that state has changed. The result is how many were returned. */
  giveBack(nowUs: number, tokens: number, leasedUs: number): number {
    this.read(nowUs)
    const before = this.debtAt(nowUs)
    this.returned(tokens, leasedUs)
    return before - this.debtAt(nowUs)
  }

  /** Whole tokens that a lease may have. */
  leasableAt(nowUs: number): number {
    return this.remainingAt(nowUs)
  }

  /** Whole tokens left. */
  remainingAt(nowUs: number): number {
    this.read(nowUs)
    return this.left(nowUs)
  }

  /** Until the key is full. */
  untilFullUs(nowUs: number): number {
    this.read(nowUs)
    return this.untilNewUs(nowUs)
  }

  /** Until this number of tokens would pass. */
  untilFreeUs(nowUs: number, cost: number): number {
    this.read(nowUs)
    return this.freeUs(nowUs, cost)
  }
}

/** The key under a limit of a window. */
export abstract class LimitStep extends LeaseStep {
  protected limit: number
  protected windowUs: number

  constructor([limit = 0, windowUs = 0]: readonly number[]) {
    super()
    this.limit = limit
    this.windowUs = windowUs
  }

  override get whole(): number {
    return this.limit
  }
}
