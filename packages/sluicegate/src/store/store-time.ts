import { CLOCK_DRIFT } from '../lease/leasing.js'
import type { Ticker } from '../time/clock.js'

/** A reading of the store's clock is used for this long; then the store is read first. */
const LONGEST_US = 10_000_000

/**
 * The store's clock as this process knows it. A reading was taken before its answer arrived, so the time that has passed here since the
 * arrival, less what clocks may drift, has passed there as well. Of two readings the later time counts, unless the store's clock stepped back.
 */
export class StoreTime {
  private readonly ticker: Ticker
  private readUs = Number.NaN
  private arrivedUs = 0
  private tookUs = 0

  private readonly drift: number

  /** @param drift the clocks may differ in pace by one part in this many. */
  constructor(ticker: Ticker, drift = CLOCK_DRIFT) {
    this.ticker = ticker
    this.drift = drift
  }

  /** This process's clock: pass it to {@link note} with the answer to what is sent now. */
  sent(): number {
    return this.ticker.read()
  }

  note(nowUs: number, sentUs: number): void {
    const arrivedUs = this.ticker.read()
    const tookUs = Math.max(0, arrivedUs - sentUs)
    const known = this.now()
    // A slower answer may be older than what is known already. One that is older than that says that the clock was stepped back.
    if (known !== undefined && nowUs < known.nowUs && known.nowUs - nowUs <= tookUs) return
    this.readUs = nowUs
    this.arrivedUs = arrivedUs
    this.tookUs = tookUs
  }

  /**
   * A time on the store's clock that has surely come, and by how much it may have passed: what an answer took, and drift. Undefined when no
   * answer came of late.
   */
  now(): { readonly nowUs: number; readonly behindUs: number } | undefined {
    const passedUs = this.ticker.read() - this.arrivedUs
    if (Number.isNaN(this.readUs) || passedUs < 0 || passedUs > LONGEST_US) return undefined
    const driftUs = Math.ceil(passedUs / this.drift)
    return { nowUs: this.readUs + passedUs - driftUs, behindUs: this.tookUs + 2 * driftUs }
  }
}
