/** The version of a value. Only the store compares it. */
export type CasVersion = string | number | bigint

/** What a store holds under a key, and its clock at that moment. */
export interface CasState {
  /** `undefined`: the key has no value. */
  readonly value: Uint8Array | undefined
  /** `undefined` exactly where there is no value. No two writes of a key have the same one. */
  readonly version: CasVersion | undefined
  /** The store's own clock: whole microseconds since the Unix epoch. */
  readonly nowUs: number
}

/** A value that is to replace what a key holds. */
export interface CasSwap {
  readonly key: string
  /** Of the value to be replaced; `undefined`: only where there is none. */
  readonly version: CasVersion | undefined
  readonly value: Uint8Array
  /** The store forgets the value this many milliseconds after the swap, or later, never earlier. */
  readonly ttlMs: number
}

/** What came of a {@link CasSwap}: `state` is what was written, with its new version, or else what is there instead. */
export interface CasOutcome {
  readonly swapped: boolean
  readonly state: CasState
}

/** What came of several swaps. `states` are in their order. */
export interface CasOutcomes {
  readonly swapped: boolean
  readonly states: readonly CasState[]
}

/** The calls of a store that compares and swaps. */
export interface SwapCalls {
  read(keys: readonly string[]): Promise<readonly CasState[]>
  swap(swaps: readonly CasSwap[]): Promise<CasOutcomes>
}
