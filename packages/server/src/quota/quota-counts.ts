import type { Entry } from '../envoy/find-rule.js'
import type { Assignment } from './assignment.js'

/** What became of the buckets of one policy. */
export interface PolicyQuotaCounts {
  /** Messages to data planes, by what they say. */
  readonly assignments: Record<Assignment['kind'], number>
  /** Requests that data planes report. */
  readonly reported: Record<'allowed' | 'denied', number>
  /** Parts that came back: to the budget after a broken stream or an abandoned bucket, or to their data plane over another stream. */
  readonly returned: Record<'broken' | 'abandoned' | 'reconnected', number>
}

/** Why a reported bucket has no part of a budget. */
export type QuotaRefusal = 'no_rule' | 'invalid_id' | 'too_many_buckets'
/** Why the service ended a stream. */
export type StreamCut = 'idle' | 'unread' | 'too_fast' | 'too_many_streams'

/** Counts of the rate limit quota service, since its start. */
export class QuotaCounts {
  reports = 0
  readonly refused: Record<QuotaRefusal, number> = { no_rule: 0, invalid_id: 0, too_many_buckets: 0 }
  readonly cuts: Record<StreamCut, number> = { idle: 0, unread: 0, too_fast: 0, too_many_streams: 0 }
  readonly #byPolicy = new Map<string, PolicyQuotaCounts>()

  /** Policies are named by the configuration, so they are bounded. */
  of(policy: string): PolicyQuotaCounts {
    let counts = this.#byPolicy.get(policy)
    if (counts === undefined) {
      counts = {
        assignments: { tokens: 0, allow: 0, deny: 0, abandon: 0 },
        reported: { allowed: 0, denied: 0 },
        returned: { broken: 0, abandoned: 0, reconnected: 0 },
      }
      this.#byPolicy.set(policy, counts)
    }
    return counts
  }

  get byPolicy(): ReadonlyMap<string, PolicyQuotaCounts> {
    return this.#byPolicy
  }
}

/** Bounds on what data planes may use. */
export interface QuotaBounds {
  readonly maxStreams: number
  /** Buckets of all streams, and budgets that wait to be full again. */
  readonly maxBuckets: number
  readonly maxBucketsPerStream: number
  /** Buckets that share one budget: its parts are planned together. */
  readonly maxBucketsPerBudget: number
  /** Usages that one stream may report at once, and each second. */
  readonly reportBurst: number
  readonly reportsPerSecond: number
  /** How long the first report of a stream may take, how long it may be without a report later, and how long it may leave an assignment unread. */
  readonly firstReportMs: number
  readonly idleStreamMs: number
  readonly unreadMs: number
}

export const DEFAULT_QUOTA_BOUNDS: QuotaBounds = {
  maxStreams: 2_000,
  maxBuckets: 50_000,
  maxBucketsPerStream: 1_000,
  maxBucketsPerBudget: 2_000,
  reportBurst: 20_000,
  reportsPerSecond: 5_000,
  firstReportMs: 15_000,
  idleStreamMs: 300_000,
  unreadMs: 30_000,
}

const MAX_ENTRIES = 16
const MAX_LENGTH = 1_024

/** What identifies a bucket: entries in the order of their keys, each key once. */
export interface BucketId {
  readonly entries: readonly Entry[]
  /** The same for the same entries, and for no others. */
  readonly text: string
}

/** The id of these entries; undefined for one that has none or an empty one, the same key twice, or too much text. */
export function bucketIdOf(entries: readonly Entry[]): BucketId | undefined {
  if (entries.length === 0 || entries.length > MAX_ENTRIES) return undefined
  const sorted = [...entries].sort((a, b) => (a.key < b.key ? -1 : a.key > b.key ? 1 : 0))
  let length = 0
  for (const [i, { key, value }] of sorted.entries()) {
    if (key === '' || value === '' || key === sorted[i - 1]?.key) return undefined
    length += key.length + value.length
  }
  if (length > MAX_LENGTH) return undefined
  return { entries: sorted, text: JSON.stringify(sorted.flatMap(({ key, value }) => [key, value])) }
}
