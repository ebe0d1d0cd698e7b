/** The sample that the page receives every second. Shared with the page's own code, so it imports nothing. */
export interface Sample {
  /** Unix time in seconds. */
  readonly atS: number
  readonly keys: 'masked' | 'shown'
  readonly policies: readonly PolicySample[]
  /** Since when, in Unix seconds, the configuration in force is older than the files, because those have faults; absent otherwise. */
  readonly staleSinceS?: number
  /** Those faults, where the page may show them. */
  readonly faults?: string
  /** Whether this page may reset and block keys. */
  readonly canChange: boolean
  /** Of the takes since the last sample; absent without any. */
  readonly latency?: Percentiles
  /** Calls to the servers of the store, busiest first; absent in memory. */
  readonly servers?: readonly ServerSample[]
  /** Who holds what of budgets whose home is another store; absent where the store itself holds them. */
  readonly region?: RegionSample
  /** Absent without a candidate. */
  readonly candidate?: CandidateSample
}

/** Time that takes spent in the engine, in microseconds. */
export interface Percentiles {
  readonly p50: number
  readonly p90: number
  readonly p99: number
  readonly p999: number
}

/** A server of the store. */
export interface ServerSample {
  /** Empty where there is one only. */
  readonly name: string
  readonly calls: number
}

/** This region, and the home of its budgets. */
export interface RegionSample {
  readonly name: string
  /** Whether the home answers no calls for some policy. */
  readonly isHomeOut: boolean
  readonly policies: readonly RegionalPolicy[]
}

/** How this region has its part of a policy's budget. */
export interface RegionalPolicy {
  readonly name: string
  /** `tokens`: the region holds tokens ahead of need; another mode: see `why`. */
  readonly mode: string
  readonly why?: string
  readonly isHomeOut: boolean
  readonly renewedPerSecond: number
  /** Tokens that were admitted without the home and charged there since. */
  readonly charged: number
  /** Regions that share the policy; 0 while that is unknown. */
  readonly regions: number
  /** The part that this region admits without the home. */
  readonly share: number
}

/** Where the candidate differs from the configuration in force. */
export interface CandidateSample {
  readonly sinceS: number
  /** The candidate's files cannot be used. */
  readonly isFaulty: boolean
  /** Their faults, where the page may show them. */
  readonly faults?: string
  readonly policies: readonly DiffSample[]
  /** Names of policies that are not compared, with the reason. */
  readonly notCompared: readonly { readonly name: string; readonly reason: string }[]
}

/** One policy, decided by both. */
export interface DiffSample {
  readonly name: string
  readonly same: number
  readonly wouldDeny: number
  readonly wouldAllow: number
  readonly failed: number
  readonly deniedKeys: readonly RankedKey[]
  readonly allowedKeys: readonly RankedKey[]
}

export interface PolicySample {
  readonly name: string
  /** For people, for example `token-bucket, 100 per 1m, burst 100`. */
  readonly description: string
  readonly allowed: Flow
  readonly denied: Flow
  readonly impossible: Flow
  readonly keysTracked: number
  /** Keys that its table grows to; absent at a store, and where memory bounds it. */
  readonly room?: number
  readonly memoryBytes: number
  /** Work whose cost is known only at its end; absent until there was some. */
  readonly holds?: HoldSample
  /** The parts of an all-of; empty for a single policy. */
  readonly parts: readonly PartSample[]
  readonly demand: readonly RankedKey[]
  readonly denials: readonly RankedKey[]
}

/** Work that is open and what is held for it, in tokens; the rest since the service started. */
export interface HoldSample {
  readonly open: number
  readonly held: number
  readonly spent: number
  /** Of what was spent, the debt. */
  readonly over: number
  readonly lapsed: number
  /** Pieces that were refused. */
  readonly cut: number
}

/** One of several policies that are charged together. */
export interface PartSample {
  readonly name: string
  readonly description: string
  /** Denials since the service started for which this part was binding. */
  readonly denied: number
}

export interface Flow {
  /** Since the service started. */
  readonly total: number
  readonly perSecond: number
}

export interface RankedKey {
  /** Masked or printable, never raw. */
  readonly key: string
  readonly count: number
}

/** The first event that the page receives: the history that the service keeps, oldest first. */
export interface History {
  readonly atS: readonly number[]
  readonly policies: readonly { readonly name: string; readonly allowed: readonly number[]; readonly denied: readonly number[] }[]
  /** Null where nothing was taken. */
  readonly latency: readonly (Percentiles | null)[]
}
