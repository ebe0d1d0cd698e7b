import { onceInProcess } from '../../once-in-process.js'

/** What a call resolves with, and what it rejects with for a denial; not an Error. */
class RateLimiterRes {
  /** Points that may still be consumed in this window. */
  readonly remainingPoints: number
  /**
   * Milliseconds until the window is new; for a denial until the same call would pass, or, if it never does, the rest of the window or
   * block.
   */
  readonly msBeforeNext: number
  /**
   * Points consumed in this window; above all points for a denied key. Denied points are not counted: for a denial it is what they would
   * have come to.
   */
  readonly consumedPoints: number
  /** Whether these points are the first of the window. */
  readonly isFirstInDuration: boolean

  constructor(remainingPoints = 0, msBeforeNext = 0, consumedPoints = 0, isFirstInDuration = false) {
    this.remainingPoints = remainingPoints
    this.msBeforeNext = msBeforeNext
    this.consumedPoints = consumedPoints
    this.isFirstInDuration = isFirstInDuration
  }

  toJSON(): { remainingPoints: number; msBeforeNext: number; consumedPoints: number; isFirstInDuration: boolean } {
    const { remainingPoints, msBeforeNext, consumedPoints, isFirstInDuration } = this
    return { remainingPoints, msBeforeNext, consumedPoints, isFirstInDuration }
  }

  toString(): string {
    return JSON.stringify(this)
  }
}

/** One class for both forms of the package, so that `instanceof` agrees. */
const OnceRateLimiterRes: typeof RateLimiterRes = /* @__PURE__ */ onceInProcess('RateLimiterRes', () => RateLimiterRes)
type OnceRateLimiterRes = RateLimiterRes

export { OnceRateLimiterRes as RateLimiterRes }
