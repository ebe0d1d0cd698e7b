import type { PolicyReading, RateLimitReading } from '../headers/read-rate-limit.js'

/** Resources other than requests limit only when nothing is left; also with a window in the name. */
const OTHER_RESOURCES = /^(?:input-|output-)?tokens\b/

const RESET_UNIT_MS = 1_000

/** What was announced of one policy. */
interface Statement {
  readonly remaining: number
  /** How long the announcement holds. */
  readonly forMs: number
  readonly endsMs: number
  /** The policy's own interval between requests, where limit and window are announced. */
  readonly tokenMs: number | undefined
  /** The interval after the end, or with nothing left. */
  readonly afterMs: number
}

/**
 * The quota that the server announced last: r requests within t milliseconds. A share of its limit may be spent at once, the rest is spread
 * evenly over the time left, r over t. Requests that were under way at the announcement count as not included in r until they end.
 *
 * Pure: times are readings in milliseconds.
 */
export class AnnouncedBudget {
  private readonly freeShare: number
  private readonly longestMs: number
  private statements: readonly Statement[] = []
  /** Requests that were under way at the announcement. */
  private unsure = 0
  /** Requests that may be sent at once. */
  private free = 0
  /** The end of the time in which nothing is left. */
  emptyUntilMs = Number.NEGATIVE_INFINITY
  /** The announced remaining requests, for statistics. */
  remaining: number | undefined

  /**
   * @param freeShare the share of an announced limit, 0 to 1, that may be spent at once.
   * @param longestMs the longest time that an empty budget is believed.
   */
  constructor(freeShare: number, longestMs: number) {
    this.freeShare = freeShare
    this.longestMs = longestMs
  }

  /**
   * The reading at which a request may follow one at `slotMs`. While requests under way may have used up the quota: when one of them has
   * ended.
   */
  readyMs(slotMs: number, inFlight: number, nowMs: number): number {
    let readyMs = slotMs
    if (this.free >= 1) return readyMs
    for (const statement of this.statements) {
      const { endsMs, afterMs } = statement
      const left = this.left(statement, inFlight)
      const dueMs = nowMs < endsMs && left >= 1 ? slotMs + evenMs(statement, left) : Number.POSITIVE_INFINITY
      // No wait is longer than the announcement holds.
      readyMs = Math.max(readyMs, Math.min(dueMs, Math.max(endsMs, slotMs + afterMs)))
    }
    return readyMs
  }

  /** Milliseconds between requests. */
  intervalMs(inFlight: number, nowMs: number): number {
    let intervalMs = 0
    if (this.free >= 1) return intervalMs
    for (const statement of this.statements) {
      const left = nowMs < statement.endsMs ? this.left(statement, inFlight) : 0
      intervalMs = Math.max(intervalMs, left >= 1 ? evenMs(statement, left) : statement.afterMs)
    }
    return intervalMs
  }

  /** Requests that may be sent at once; spread requests go by {@link intervalMs}. */
  get room(): number {
    return this.free >= 1 ? Math.floor(this.free) : Number.POSITIVE_INFINITY
  }

  /** True if the request was one of those that may be sent at once. */
  sent(): boolean {
    if (this.free < 1) return false
    this.free--
    return true
  }

  /** Such a request was not sent. */
  unsent(): void {
    this.free++
  }

  /** Reads a response. Without numbers the earlier announcement holds until its end. */
  read(reading: RateLimitReading, inFlight: number, nowMs: number): void {
    const { policies = [] } = reading
    // Announced in fields of their own, and not with a policy.
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

  /** @param mostMs the value of `Retry-After`, which precedes a reset: draft 11, section 7. */
  private statement({ remaining = 0, resetAfterMs, limit, windowMs }: PolicyReading, mostMs: number, nowMs: number): Statement | undefined {
    const tokenMs = limit !== undefined && windowMs !== undefined ? windowMs / Math.max(1, limit) : undefined
    const saidMs = resetAfterMs ?? (tokenMs === undefined ? undefined : tokenMs * Math.max(1, remaining))
    if (saidMs === undefined) return undefined
    const forMs = remaining < 1 ? Math.min(saidMs, this.longestMs) : saidMs
    if (remaining < 1 && mostMs < forMs) return this.emptyFor(mostMs, nowMs)
    const endsMs = nowMs + forMs
    if (remaining < 1) this.emptyUntilMs = Math.max(this.emptyUntilMs, endsMs)
    // Without a limit the share is not known.
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

  /** A response without an announcement: expired ones end, except the interval of their window. */
  private outlast(nowMs: number): void {
    if (this.statements.every(({ endsMs }) => nowMs < endsMs)) return
    this.statements = this.statements.filter(({ endsMs, tokenMs }) => nowMs < endsMs || tokenMs !== undefined)
  }

  private left({ remaining }: Statement, inFlight: number): number {
    return remaining - Math.min(this.unsure, inFlight)
  }
}

/** Resets are announced in whole seconds, rounded up: while requests remain, the last one is not waited for in full. */
function evenMs({ forMs, tokenMs }: Statement, left: number): number {
  return tokenMs === undefined ? forMs / left : Math.max(tokenMs, (forMs - RESET_UNIT_MS) / left)
}

/** Draft 7 and older announce the window in another field than the remaining requests. */
function withWindow({ policies = [], ...numbers }: RateLimitReading): PolicyReading {
  const windowMs = policies.find(({ limit }) => limit === numbers.limit)?.windowMs
  return { ...numbers, ...(windowMs !== undefined && { windowMs }) }
}

function binds({ name, unit = 'requests', remaining }: PolicyReading): boolean {
  if (remaining === undefined) return false
  return remaining === 0 || (unit === 'requests' && !OTHER_RESOURCES.test(name ?? ''))
}
