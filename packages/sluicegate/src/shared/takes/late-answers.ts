import { warnOfStore } from '../../warn-once.js'

/** After a stall of this process all answers are late, which says nothing about the network unless it goes on for this many leases. */
const LATE_LEASES = 10
const LATE_IN_A_ROW = 3

/**
 * Answers whose tokens had expired when they came. Several in a row mean that the network is slower than a lease is long: the process warns
 * once.
 */
export class LateAnswers {
  count = 0
  private inARow = 0
  private sinceUs = 0
  private readonly mend: string
  private readonly warn: (message: string) => void

  /** @param mend what to do about it, for the warning. */
  constructor(mend: string, warn = warnOfSlowStore) {
    this.mend = mend
    this.warn = warn
  }

  /** @param leaseUs the length of a lease. */
  answered(isLate: boolean, nowUs: number, leaseUs: number): void {
    this.inARow = isLate ? this.inARow + 1 : 0
    if (!isLate) return
    if (this.inARow === 1) this.sinceUs = nowUs
    this.count++
    if (this.inARow < LATE_IN_A_ROW || nowUs - this.sinceUs < LATE_LEASES * leaseUs) return
    this.inARow = 0
    this.warn(
      `answers take longer than a lease of ${leaseUs / 1000} ms, so that nothing they give can be spent: ${this.mend}; see node_modules/sluicegate/docs/outages.md`,
    )
  }
}

function warnOfSlowStore(message: string): void {
  warnOfStore('SLUICEGATE_SLOW_STORE', message)
}
