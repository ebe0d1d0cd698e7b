/**
 * The decisions of redis-cell 0.5, its arithmetic written down once more in integers of any size: `src/cell/mod.rs` and the rounding of
 * `src/lib.rs` of https://github.com/brandur/redis-cell. Where a result of redis-cell depends on a 64-bit integer that overflows, or on its
 * store, which forgets a key up to a millisecond before its arrival time, this says what the arithmetic alone would.
 */
export class RedisCell {
  /** Theoretical arrival times in nanoseconds. */
  readonly #arrivals = new Map<string, bigint>()

  /** The reply to `CL.THROTTLE key maxBurst count periodS quantity`, or undefined for an error. */
  throttle(key: string, { maxBurst, count, periodS, quantity, nowNs }: CellCall): CellReply | undefined {
    const limit = BigInt(maxBurst) + 1n
    const emission = emissionInterval(BigInt(periodS) * NS_PER_S, count)
    if (emission === 0n) return undefined
    const tolerance = emission * limit
    const increment = emission * BigInt(quantity)
    const stored = this.#arrivals.get(key)
    // The store removes a key at its arrival time.
    const arrival = stored === undefined || stored < nowNs ? nowNs : stored
    const next = arrival + increment
    const late = next - tolerance - nowNs
    const limited = late > 0n
    if (!limited) this.#arrivals.set(key, next)
    const ttl = (limited ? arrival : next) - nowNs
    const left = tolerance - ttl
    // A quotient that is no number becomes the integer 0.
    const remaining = left > -emission ? Math.trunc(Number(left / 1000n) / Number(emission / 1000n)) || 0 : 0
    const retryNs = limited && increment <= tolerance ? late : undefined
    return [limited ? 1 : 0, Number(limit), remaining, retryNs === undefined ? -1 : seconds(retryNs), seconds(ttl)]
  }
}

/** What a call of `CL.THROTTLE` says, and when it is made. */
export interface CellCall {
  readonly maxBurst: number
  readonly count: number
  readonly periodS: number
  readonly quantity: number
  readonly nowNs: bigint
}

/** 1 if limited, limit, remaining, seconds to the retry or -1, seconds until the key is full. */
export type CellReply = readonly [limited: number, limit: number, remaining: number, retryAfterS: number, resetAfterS: number]

const NS_PER_S = 1_000_000_000n
const NS_PER_MS = 1_000_000n

/** A quotient of doubles, truncated to 64 bits. */
function emissionInterval(periodNs: bigint, count: number): bigint {
  return BigInt(Math.trunc(Number(periodNs) / count))
}

/** A part of a second counts as one if it has a millisecond. */
function seconds(ns: bigint): number {
  const wholeS = ns / NS_PER_S
  return Number((ns % NS_PER_S) / NS_PER_MS > 0n ? wholeS + 1n : wholeS)
}
