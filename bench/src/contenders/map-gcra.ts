import type { Contender } from '../contender.js'
import { ALLOW, DENY, type Job } from '../job.js'

interface Cell {
  tatMs: number
}

/**
 * What one would write by hand for one thread: GCRA in doubles over a Map, one mutable record a key, and an answer of the four
 * numbers that a response needs. No limit on memory, nothing is ever forgotten, keys are not checked.
 */
export function mapGcra(job: Job, nowMs: () => number): Contender {
  const { limit, window, burst } = job.outcome === 'allow' ? ALLOW : DENY
  const intervalMs = (window === '1s' ? 1_000 : 3_600_000) / limit
  const toleranceMs = intervalMs * burst
  const cells = new Map<string, Cell>()
  const take = (key: string) => {
    const now = nowMs()
    let cell = cells.get(key)
    if (cell === undefined) {
      cell = { tatMs: now }
      cells.set(key, cell)
    }
    const next = Math.max(cell.tatMs, now) + intervalMs
    const left = toleranceMs - (next - now)
    if (left < 0) return { allowed: false, remaining: 0, retryAfterMs: Math.ceil(-left), resetAfterMs: Math.ceil(cell.tatMs - now) }
    cell.tatMs = next
    return { allowed: true, remaining: Math.floor(left / intervalMs), retryAfterMs: 0, resetAfterMs: Math.ceil(next - now) }
  }
  return { take, passed: (answer) => (answer as ReturnType<typeof take>).allowed, awaited: false }
}
