/** The counters of several limiters together. */
export function sumOfStats<Stats extends object>(limiters: Iterable<{ stats(): Stats }>): Stats {
  const sum: Record<string, number> = {}
  for (const limiter of limiters) {
    for (const [name, count] of Object.entries(limiter.stats())) if (typeof count === 'number') sum[name] = (sum[name] ?? 0) + count
  }
  return sum as Stats
}
