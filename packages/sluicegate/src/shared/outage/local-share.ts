import type { Clock } from '../../time/clock.js'

/** What decides in an outage. */
export type OutageMode = 'local' | 'open' | 'closed'

/** The share of a process that does not know how many others there are. */
export const UNKNOWN_SHARE = 0.1

/** How long the store remembers a node. */
export const REMEMBERED_MS = 180_000
/** Between the first counts of a limiter; each pause is twice as long as the one before, up to {@link REST_MS}. */
const FIRST_REST_MS = 1_000
/** Between counts at least. */
const REST_MS = 10_000
/** This many calls are answered between two counts, */
const MOST_CALLS = 128
/** or this much time goes by. */
const LONGEST_REST_MS = 60_000

/** A limiter that counted nothing for so long is as new: the store may have forgotten all others meanwhile, as after an outage of all of them. */
const SILENT_MS = REMEMBERED_MS - REST_MS

/** When a count is trusted. */
export const SHARE_RULES = {
  /** How old a count may be when an outage begins: every node that called since was in it, or came later. */
  trustedMs: SILENT_MS,
  /** How long a limiter has counted: after that all others have called again that a store without its data forgot. */
  settledMs: LONGEST_REST_MS,
  /** For how long, and up to twice as long, the largest count holds. */
  heldMs: REMEMBERED_MS,
}

export type ShareRules = Readonly<typeof SHARE_RULES>

/** The id of a limiter among those that share its policy: 48 random bits. Its tiers have the same, since a key is decided by one of them. */
export function newNodeId(): string {
  return globalThis.crypto.randomUUID().slice(0, 13)
}

/** The share of the budget that a process may spend in an outage. */
export interface LocalShare {
  /** Limiters that share the policy, as far as is known, this one included; 0 while it is not. */
  readonly nodes: number
  /** The share in an outage that began now, or the one in force. */
  readonly inForce: number
  /** The share of an outage; it stays until the store answers again. */
  forOutage(): number
  /** The store answered a call. */
  answered(): void
}

/** A share that others determine: the option `share`, or a primary that knows its workers. */
export class GivenShare implements LocalShare {
  nodes = 0
  inForce: number

  constructor(share: number) {
    this.inForce = share
  }

  setNodes(nodes: number): void {
    this.nodes = nodes
    this.inForce = 1 / nodes
  }

  forOutage(): number {
    return this.inForce
  }

  answered(): void {}
}

/**
 * `1 / nodes`, by the store's count of the limiters that called of late. The count is read now and then beside an answered call: never by a
 * timer, and at most once in 10 s after the start.
 *
 * It grows at once and shrinks slowly: the largest count of the last 3 to 6 minutes holds. The share is at most {@link UNKNOWN_SHARE} where a
 * count says nothing about those that came since, because the store was not called for long, or where it may be too low, because the limiter
 * is new, or was silent for long, and the store may have lost its data.
 */
export class CountedShare implements LocalShare {
  private readonly clock: Clock
  private readonly count: () => Promise<number>
  private readonly rules: ShareRules
  /** Of the outage that is on. */
  private ofOutage: number | undefined
  private calls = 0
  private restMs = FIRST_REST_MS
  /** From then on it counts after {@link MOST_CALLS}, and */
  private soonMs = Number.NEGATIVE_INFINITY
  /** from then on with the next call. */
  private dueMs = Number.NEGATIVE_INFINITY
  private firstMs = Number.POSITIVE_INFINITY
  private lastMs = Number.NEGATIVE_INFINITY
  /** The largest counts since `sinceMs`, and in the time as long before. */
  private peak = 0
  private peakBefore = 0
  private sinceMs = Number.NEGATIVE_INFINITY

  /** @param count calls the store: how many limiters there are, this one included. */
  constructor(clock: Clock, count: () => Promise<number>, rules = SHARE_RULES) {
    this.clock = clock
    this.count = count
    this.rules = rules
  }

  get nodes(): number {
    return Math.max(this.peak, this.peakBefore)
  }

  get inForce(): number {
    return this.ofOutage ?? this.now()
  }

  forOutage(): number {
    this.ofOutage ??= this.now()
    return this.ofOutage
  }

  answered(): void {
    this.ofOutage = undefined
    this.calls++
    const nowMs = this.clock.nowMs()
    if (nowMs < (this.calls < MOST_CALLS ? this.dueMs : this.soonMs)) return
    this.calls = 0
    this.soonMs = nowMs + this.restMs
    this.dueMs = this.restMs < REST_MS ? this.soonMs : nowMs + LONGEST_REST_MS
    this.restMs = Math.min(REST_MS, 2 * this.restMs)
    this.count().then(
      (nodes) => this.heard(nodes, nowMs),
      // It is repeated when it is due again.
      () => undefined,
    )
  }

  /** @param sentMs when it was called for: those that came since may not be in it. */
  private heard(nodes: number, sentMs: number): void {
    this.firstMs = sentMs - this.lastMs > SILENT_MS ? sentMs : Math.min(this.firstMs, sentMs)
    this.lastMs = Math.max(this.lastMs, sentMs)
    const { heldMs } = this.rules
    const sinceMs = sentMs - this.sinceMs
    if (sinceMs >= heldMs) {
      this.peakBefore = sinceMs < 2 * heldMs ? this.peak : 0
      this.peak = 0
      this.sinceMs = sentMs
    }
    this.peak = Math.max(this.peak, nodes)
  }

  private now(): number {
    const { trustedMs, settledMs } = this.rules
    const isKnown = this.lastMs - this.firstMs >= settledMs && this.clock.nowMs() - this.lastMs <= trustedMs
    const share = 1 / Math.max(1, this.nodes)
    return isKnown ? share : Math.min(UNKNOWN_SHARE, share)
  }
}

/**
 * `1 / nodes`, as the store counts them; of several policies the least, as each may be shared with other limiters.
 *
 * @param countNodes absent where the store does not count.
 */
export function shareCountedBy(
  countNodes: ((policies: readonly string[], id: string) => Promise<number>) | undefined,
  policies: readonly string[],
  idOf: () => string,
  clock: Clock,
): LocalShare {
  return countNodes === undefined ? new GivenShare(UNKNOWN_SHARE) : new CountedShare(clock, async () => countNodes(policies, idOf()))
}

/**
 * The share of an outage by the options.
 *
 * @param counted the share where no option says what it is.
 */
export function localShareOf(mode: OutageMode, share: number | undefined, counted: () => LocalShare): LocalShare {
  if (mode !== 'local') return new GivenShare(mode === 'open' ? 1 : 0)
  return share === undefined ? counted() : new GivenShare(share)
}
