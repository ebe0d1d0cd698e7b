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
