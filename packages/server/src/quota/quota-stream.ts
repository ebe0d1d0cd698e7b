import type { Entry } from '../envoy/find-rule.js'
import type { Assignment } from './assignment.js'
import type { Holder } from './holder.js'
import type { BucketId } from './quota-counts.js'
import type { SharedQuota } from './shared-quota.js'

/** What a data plane reports of one bucket. */
export interface BucketUsage {
  readonly entries: readonly Entry[]
  readonly allowed: number
  readonly denied: number
}

/** What a data plane is to do with one bucket. */
export interface BucketAction {
  readonly entries: readonly Entry[]
  readonly assignment: Assignment
}

/** The way to a data plane. */
export interface QuotaOutlet {
  /** The client of the stream, for bounds: its address or network. */
  readonly host: string
  /** The data plane, as far as it can be told: the same when it opens another stream. */
  readonly plane: string
  /** Sends actions; `onDelivered` is called once the client's connection has received them. */
  send(actions: readonly BucketAction[], onDelivered: () => void): void
  /** Ends the stream. {@link QuotaStream.closed} follows. */
  end(reason: 'idle' | 'unread' | 'too_fast' | 'leaving'): void
}

/** One bucket of one data plane. */
export interface Bucket {
  readonly id: BucketId
  readonly stream: StreamState
  readonly quota: SharedQuota<Bucket>
  /** Undefined where the quota allows or denies all. */
  readonly holder: Holder | undefined
  /** Of the configuration by which the quota was found. */
  foundIn: number
  /** When a bucket without a holder was sent its assignment. */
  sentAtMs: number
}

/** What is known of a stream. */
export interface StreamState {
  /** Of the first report; undefined before it. */
  domain: string | undefined
  readonly outlet: QuotaOutlet
  readonly buckets: Map<string, Bucket>
  heardAtMs: number
  /** When the oldest message was sent that has not arrived; undefined: all have. */
  unreadSinceMs: number | undefined
  unreadMessages: number
  /** Usages that may be reported now, and when that was. */
  credit: number
  creditAtMs: number
}
