import { LATENCY_BOUNDS_S } from '../engine/latency.js'
import type { Percentiles } from './sample.js'

/**
 * Percentiles in microseconds of the observations between two states of the buckets; undefined without any. Between the bounds of a bucket they are
 * interpolated, and above the last bound they are that bound.
 */
export function percentilesBetween(before: ArrayLike<number>, after: ArrayLike<number>): Percentiles | undefined {
  const counts = Array.from(after, (count, i) => count - (before[i] ?? 0))
  const total = counts.reduce((sum, count) => sum + count, 0)
  if (total === 0) return undefined
  const at = (share: number): number => {
    let below = 0
    for (const [i, bound] of LATENCY_BOUNDS_S.entries()) {
      const count = counts[i] as number
      if (count > 0 && below + count >= share * total) {
        const lowest = LATENCY_BOUNDS_S[i - 1] ?? 0
        return 1e6 * (lowest + ((bound - lowest) * (share * total - below)) / count)
      }
      below += count
    }
    return 1e6 * (LATENCY_BOUNDS_S.at(-1) as number)
  }
  return { p50: at(0.5), p90: at(0.9), p99: at(0.99), p999: at(0.999) }
}
