/** The sample that the page receives every second. Shared with the page's own code, so it imports nothing. */
export interface Sample {
  /** Unix time in seconds. */
  readonly atS: number
  readonly keys: 'masked' | 'shown'
  readonly policies: readonly PolicySample[]
  /** Since when, in Unix seconds, the configuration in force is older than the files, because those have faults; absent otherwise. */
  readonly staleSinceS?: number
}

export interface PolicySample {
  readonly name: string
  /** For people, for example `token-bucket, 100 per 1m, burst 100`. */
  readonly description: string
  readonly allowed: Flow
  readonly denied: Flow
  readonly impossible: Flow
  readonly keysTracked: number
  /** The parts of an all-of; empty for a single policy. */
  readonly parts: readonly PartSample[]
  readonly demand: readonly RankedKey[]
  readonly denials: readonly RankedKey[]
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
}
