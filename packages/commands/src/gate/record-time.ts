/** Records in a row from before the window that show a step of the writer's clock, and not a few slow requests. */
const RECORDS_OF_A_STEP = 100

/**
 * The times of a log or stream whose clock may be set back. After a step back its times go on from the latest, so that its records stay in
 * the window; the shift ends as soon as its times are ahead of this process.
 */
export class RecordTime {
  readonly #windowMs: number
  readonly #nowMs: () => number
  #shiftMs = 0
  #latestMs = Number.NEGATIVE_INFINITY
  #early = 0

  /** @param nowMs a clock that does not step, in Unix milliseconds. */
  constructor(windowMs: number, nowMs: () => number = () => performance.timeOrigin + performance.now()) {
    this.#windowMs = windowMs
    this.#nowMs = nowMs
  }

  /** The time at which a record counts, for the time that it has. */
  of(timeMs: number): number {
    let ownMs = timeMs + this.#shiftMs
    if (ownMs > this.#latestMs) {
      this.#early = 0
      const nowMs = this.#nowMs()
      if (ownMs > nowMs) {
        this.#shiftMs = Math.max(0, nowMs - timeMs)
        ownMs = Math.min(nowMs, timeMs + this.#shiftMs)
      }
      this.#latestMs = Math.max(this.#latestMs, ownMs)
      return ownMs
    }
    if (ownMs >= this.#latestMs - this.#windowMs) {
      this.#early = 0
      return ownMs
    }
    if (++this.#early < RECORDS_OF_A_STEP) return ownMs
    this.#early = 0
    this.#shiftMs += this.#latestMs - ownMs
    return this.#latestMs
  }
}
