import type { PolicyReading, RateLimitReading } from '../headers/rate-limit-reading.js'

/** Policies that count something else than requests bind only when nothing is left. */
const OTHER_RESOURCES = new Set(['tokens', 'input-tokens', 'output-tokens'])

const TOLD_UNIT_MS = 1_000

/** What was told of one policy. */
interface Statement {
  readonly remaining: number
  /** How long it says something. */
  readonly forMs: number
  readonly endsMs: number
  /** Between requests of the policy itself, where limit and window are told. */
  readonly tokenMs: number | undefined
  /** Between requests after the end, or with nothing left. */
  readonly afterMs: number
}

/**
 * The budget that the other side told last: r requests within t milliseconds. A share of its limit may be spent at once, the rest is spread
 * evenly over the time left, r over t. Requests that were under way then count as if they were not in r yet, until they are over.
 *
 * Pure: times are readings in milliseconds.
 */
export class ToldBudget {
  private readonly freeShare: number
  private statements: readonly Statement[] = []
  /** Requests that were under way when it was told. */
  private unsure = 0
  /** Requests that may be sent at once. */
  private free = 0
  /** Until when nothing is left. */
  emptyUntilMs = Number.NEGATIVE_INFINITY
  /** What was told to remain, for those who look. */
  remaining: number | undefined

  /** @param freeShare of a told limit, 0 to 1: what may be spent without spreading it. */
  constructor(freeShare: number) {
    this.freeShare = freeShare
  }

  /** When the next may go after one at `slotMs`, with so many under way. Where these may have used up what was left, one that is over tells. */
  readyMs(slotMs: number, inFlight: number, nowMs: number): number {
    let readyMs = slotMs
    if (this.free >= 1) return readyMs
    for (const statement of this.statements) {
      const { endsMs, afterMs } = statement
      const left = this.left(statement, inFlight)
      const dueMs = nowMs < endsMs && left >= 1 ? slotMs + evenMs(statement, left) : Number.POSITIVE_INFINITY
      // A wait that is longer than what was told ends with it.
      readyMs = Math.max(readyMs, Math.min(dueMs, Math.max(endsMs, slotMs + afterMs)))
    }
    return readyMs
  }

  /** Milliseconds between requests, with so many under way. */
  intervalMs(inFlight: number, nowMs: number): number {
    let intervalMs = 0
    if (this.free >= 1) return intervalMs
    for (const statement of this.statements) {
      const left = nowMs < statement.endsMs ? this.left(statement, inFlight) : 0
      intervalMs = Math.max(intervalMs, left >= 1 ? evenMs(statement, left) : statement.afterMs)
    }
    return intervalMs
  }

  /** How many may go at once; what is spread goes by {@link intervalMs}. */
  get room(): number {
    return this.free >= 1 ? Math.floor(this.free) : Number.POSITIVE_INFINITY
  }

  /** True when it was one of those that may go at once. */
  sent(): boolean {
    if (this.free < 1) return false
    this.free--
    return true
  }

  /** One that was to go at once did not. */
  unsent(): void {
    this.free++
  }

  /** What a response says, with so many others still under way. Without numbers what was told before holds on, until its end. */
  hear(reading: RateLimitReading, inFlight: number, nowMs: number): void {
    const { policies = [] } = reading
    // Of no policy: told in fields of its own.
    const isApart = policies.every(({ remaining }) => remaining !== reading.remaining)
    const bound = (isApart ? [...policies, withWindow(reading)] : policies).filter(binds)
    if (bound.length === 0) {
      this.outlast(nowMs)
      return
    }
    this.remaining = Math.min(...bound.map(({ remaining = 0 }) => remaining))
    this.unsure = inFlight
    this.free = Number.POSITIVE_INFINITY
    this.emptyUntilMs = Number.NEGATIVE_INFINITY
    const { retryAfterMs = Number.POSITIVE_INFINITY } = reading
    this.statements = bound.flatMap((each) => this.statement(each, retryAfterMs, nowMs) ?? [])
  }

  /** @param mostMs what `Retry-After` says, which has precedence over a reset: draft 11, section 7. */
  private statement({ remaining = 0, resetAfterMs, limit, windowMs }: PolicyReading, mostMs: number, nowMs: number): Statement | undefined {
    const tokenMs = limit !== undefined && windowMs !== undefined ? windowMs / Math.max(1, limit) : undefined
    const forMs = resetAfterMs ?? (tokenMs === undefined ? undefined : tokenMs * Math.max(1, remaining))
    if (forMs === undefined) return undefined
    if (remaining < 1 && mostMs < forMs) return this.emptyFor(mostMs, nowMs)
    const endsMs = nowMs + forMs
    if (remaining < 1) this.emptyUntilMs = Math.max(this.emptyUntilMs, endsMs)
    // Without a limit nobody can tell what share this is.
    const left = remaining - this.unsure
    const free = limit === undefined || left < 1 ? 0 : Math.max(0, Math.floor(left - limit * (1 - this.freeShare)))
    this.free = Math.min(this.free, free)
    return { remaining, forMs, endsMs, tokenMs, afterMs: tokenMs ?? (limit === undefined ? 0 : forMs / Math.max(1, limit)) }
  }

  private emptyFor(forMs: number, nowMs: number): Statement {
    const endsMs = nowMs + forMs
    this.emptyUntilMs = Math.max(this.emptyUntilMs, endsMs)
    this.free = 0
    return { remaining: 0, forMs, endsMs, tokenMs: undefined, afterMs: 0 }
  }

  /** Somebody was answered without a word of it: what is over says no more, but for how much a window has. */
  private outlast(nowMs: number): void {
    if (this.statements.every(({ endsMs }) => nowMs < endsMs)) return
    this.statements = this.statements.filter(({ endsMs, tokenMs }) => nowMs < endsMs || tokenMs !== undefined)
  }

  private left({ remaining }: Statement, inFlight: number): number {
    return remaining - Math.min(this.unsure, inFlight)
  }
}

/** Resets are told in whole seconds, rounded up. What is left of the last one is nothing to wait for, as long as some remain. */
function evenMs({ forMs, tokenMs }: Statement, left: number): number {
  return tokenMs === undefined ? forMs / left : Math.max(tokenMs, (forMs - TOLD_UNIT_MS) / left)
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
