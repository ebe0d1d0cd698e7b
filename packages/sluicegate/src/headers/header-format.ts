import type { Decision } from '../decision.js'
import type { HeaderPair } from './header-pair.js'
import type { Quota, QuotaUnit } from './quota.js'

/** A quota with what a format makes of it once. */
export interface Digest {
  readonly quota: Quota
  /** The unit that was asked for. */
  readonly unit: QuotaUnit | undefined
  /** Its item in `RateLimit-Policy`. */
  readonly item: string
  /** The whole `RateLimit-Policy` where it stands alone. */
  readonly alone: HeaderPair
  /** What each of its service limits begins with. */
  readonly prefix: string
}

/** A decision under a single policy. */
export interface Served {
  readonly digest: Digest
  readonly decision: Decision
  /** `pk` as it is written, undefined when it is not told. */
  readonly partitionKey: string | undefined
}

/** How one version writes. */
export interface HeaderFormat {
  /** The item of a quota in `RateLimit-Policy`; undefined where there is no such field. */
  readonly item: ((quota: Quota) => string) | undefined
  /** What the service limits of a policy begin with, where there is anything to prepare. */
  readonly prefix?: (quota: Quota) => string
  /** The quotas that may stand together in one `RateLimit-Policy`; all of them where it is not given. */
  readonly listed?: (digests: readonly Digest[]) => readonly Digest[]
  /**
   * All fields of one decision: nearly every response has only that.
   *
   * @param policies the field `RateLimit-Policy`, first of those that are returned, where there is such a field.
   * @param partitionKey as {@link Served} has it.
   * @param nowMs reads Unix time, for those that tell it.
   */
  fields(policies: HeaderPair, digest: Digest, decision: Decision, partitionKey: string | undefined, nowMs: () => number): HeaderPair[]
  /** All fields of several decisions; where it is not given, those of the one that binds. */
  readonly several?: (policies: HeaderPair, served: readonly Served[]) => HeaderPair[]
}
