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
