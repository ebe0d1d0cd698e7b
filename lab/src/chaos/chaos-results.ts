import type { FailoverReport } from './failover.js'
import type { PostgresChaosReport } from './postgres/postgres-fault.js'
import type { ResizeReport } from './resize.js'
import type { SharedOutageReport } from './shared-outage.js'

/** Failovers under mixes of versions, and whether all stayed within the bound. */
export interface MixedReport extends FailoverReport {
  readonly seed: number
  readonly date: string
  readonly isWithin: boolean
}

/** What a run found, and the setting of all its subjects. */
export interface ChaosResults {
  readonly kind: 'chaos'
  readonly node: string
  readonly rate: { readonly limit: number; readonly burst: number }
  readonly localShare: number
  readonly failover: FailoverReport
  readonly mixed: MixedReport
  readonly sentinel: FailoverReport
  readonly resize: ResizeReport
  readonly outage: SharedOutageReport
  readonly postgres: PostgresChaosReport
}
