import type { PolicyReading, RateLimitReading } from '../headers/rate-limit-reading.js'

/** Policies that count something else than requests bind only when nothing is left. */
const OTHER_RESOURCES = new Set(['tokens', 'input-tokens', 'output-tokens'])

const TOLD_UNIT_MS = 1_000

/**
 * The budget that the other side told last: r requests within t milliseconds. A share of its limit may be spent at once, the rest is spread
 * evenly over the time left, r over t. Requests under way count as if they were not in r yet.
 *
 * Pure: times are readings in milliseconds.
 */
export class ToldBudget {
  private readonly freeShare: number
  /** Requests that may be sent at once. */
  private free = 0
  /** Between the others. */
  private spacingMs = 0
  private notBeforeMs = Number.NEGATIVE_INFINITY
  /** What was told to remain, for those who look. */
  remaining: number | undefined

  /** @param freeShare of a told limit, 0 to 1: what may be spent without spreading it. */
  constructor(freeShare: number) {
    this.freeShare = freeShare
  }

  /** Until when nothing is to be sent. */
  get untilMs(): number {
    return this.notBeforeMs
  }

  /** Milliseconds between requests. */
  get intervalMs(): number {
    return this.free >= 1 ? 0 : this.spacingMs
  }

  sent(): void {
    if (this.free > 0) this.free--
  }

  /** What a response says, with so many others still under way. Without numbers what was told before holds on. */
  hear(reading: RateLimitReading, inFlight: number, nowMs: number): void {
    const told = reading.policies?.filter(({ remaining }) => remaining !== undefined) ?? []
    const statements = (told.length > 0 ? told : [withWindow(reading)]).filter(binds)
    if (statements.length === 0) return
    this.free = Number.POSITIVE_INFINITY
    this.spacingMs = 0
    this.notBeforeMs = Number.NEGATIVE_INFINITY
    this.remaining = Math.min(...statements.map(({ remaining = 0 }) => remaining))
    for (const statement of statements) this.add(statement, inFlight, nowMs)
  }

  private add({ remaining = 0, resetAfterMs, limit, windowMs }: PolicyReading, inFlight: number, nowMs: number): void {
    const tokenMs = limit !== undefined && windowMs !== undefined ? windowMs / Math.max(1, limit) : undefined
    const forMs = resetAfterMs ?? (tokenMs === undefined ? undefined : tokenMs * Math.max(1, remaining))
    if (forMs === undefined) return
    const left = remaining - inFlight
    if (left < 1) {
      this.free = 0
      this.notBeforeMs = Math.max(this.notBeforeMs, nowMs + forMs)
      this.spacingMs = Math.max(this.spacingMs, tokenMs ?? forMs / Math.max(1, limit ?? 1))
      return
    }
    // Resets are told in whole seconds, rounded up. What is left of the last one is nothing to wait for, as long as some remain.
    const evenMs = tokenMs === undefined ? forMs / left : Math.max(tokenMs, (forMs - TOLD_UNIT_MS) / left)
    this.spacingMs = Math.max(this.spacingMs, evenMs)
    // Without a limit nobody can tell what share this is.
    this.free = Math.min(this.free, limit === undefined ? 0 : Math.max(0, Math.floor(left - limit * (1 - this.freeShare))))
  }
}

/** Draft 7 and older tell the window in another field than what remains. */
function withWindow({ policies = [], ...numbers }: RateLimitReading): PolicyReading {
  const windowMs = policies.find(({ limit }) => limit === numbers.limit)?.windowMs
  return { ...numbers, ...(windowMs !== undefined && { windowMs }) }
}

function binds({ name, unit = 'requests', remaining }: PolicyReading): boolean {
  if (remaining === undefined) return false
  return remaining === 0 || (unit === 'requests' && !OTHER_RESOURCES.has(name ?? ''))
}
