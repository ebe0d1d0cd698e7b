import type { Limiter, LimiterStats } from '../limiter.js'

/** The counters of several limiters together. */
export function sumOfStats(limiters: Iterable<Pick<Limiter, 'stats'>>): LimiterStats {
  const sum: Record<string, number> = {}
  for (const limiter of limiters) {
    for (const [name, count] of Object.entries(limiter.stats())) sum[name] = (sum[name] ?? 0) + count
  }
  return sum as Record<keyof LimiterStats, number>
}
