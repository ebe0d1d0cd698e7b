import { onceInProcess } from '../../once-in-process.js'

/** What rate-limiter-flexible resolves with, and what it rejects with when it denies: no error. */
class RateLimiterRes {
  /** Points that may still be consumed in this window. */
  readonly remainingPoints: number
  /** Milliseconds until the window is new; of a denial until the same would pass, or, where it never does, the rest of the window or block. */
  readonly msBeforeNext: number
  /**
   * Points that were consumed in this window; above all points where the key is denied. What was denied is not counted: of a denial it says
   * what it would have come to.
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

/** Of one identity in both forms of the package, so that `instanceof` agrees. */
const OnceRateLimiterRes: typeof RateLimiterRes = /* @__PURE__ */ onceInProcess('RateLimiterRes', () => RateLimiterRes)
type OnceRateLimiterRes = RateLimiterRes

export { OnceRateLimiterRes as RateLimiterRes }
