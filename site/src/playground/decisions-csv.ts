import type { Decision } from 'sluicegate'
import type { Arrival } from './arrivals.js'

/** Every decision as a line, for a spreadsheet, and for the test that compares them with those of Node. */
export function decisionsCsv(arrivals: readonly Arrival[], decisions: readonly Decision[]): string {
  const lines = arrivals.map(({ atMs, key }, i) => {
    const { allowed, remaining, retryAfterMs, resetAfterMs } = decisions[i] as Decision
    return [atMs, `"${key.replaceAll('"', '""')}"`, allowed, remaining, retryAfterMs, resetAfterMs].join(',')
  })
  return `at_ms,key,allowed,remaining,retry_after_ms,reset_after_ms\n${lines.join('\n')}\n`
}
