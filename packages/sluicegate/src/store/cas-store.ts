import type { CancelSignal } from '../shared/backend.js'

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

/**
 * Any store that can compare and swap, as {@link createStoreLimiter} uses it. Values are bytes of the limiter's own.
 *
 * Each call is one atomic step, and sees every step that has been answered before it was made. It rejects when no answer came: then it is
 * unknown whether it was made, and the store does not try it again by itself. A call that `signal` cancels before it was sent is not made.
 *
 * Keys are 1 to about 8,000 characters of text without spaces or control characters.
 */
export interface CasStore {
  /** For messages and metrics, such as `'postgres'`. */
  readonly name: string
  read(key: string, signal?: CancelSignal): Promise<CasState>
  swap(swap: CasSwap, signal?: CancelSignal): Promise<CasOutcome>
  /** Only of stores with transactions: makes all swaps, or none. The keys differ. `allOf` needs it, unless it is leased. */
  swapAll?(swaps: readonly CasSwap[], signal?: CancelSignal): Promise<CasOutcomes>
  /**
   * Makes each swap for itself, as `swap` does, in one call; the outcomes are in their order. The keys differ. Where it and `readAll` are
   * there, calls of one process for many keys go together.
   */
  swapMany?(swaps: readonly CasSwap[], signal?: CancelSignal): Promise<readonly CasOutcome[]>
  /** The states of several keys, in their order, at one moment or not. */
  readAll?(keys: readonly string[], signal?: CancelSignal): Promise<readonly CasState[]>
}
