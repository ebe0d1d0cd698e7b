import type { CancelSignal } from '../shared/backend.js'
import type { CasOutcome, CasOutcomes, CasState, CasSwap, CasVersion } from '../shared/swap-calls.js'

export type { CasOutcome, CasOutcomes, CasState, CasSwap, CasVersion }

/** What a step does with a key. */
export type CasStepVerb = 'take' | 'peek' | 'refund' | 'penalize' | 'block' | 'reset' | 'reserve' | 'giveBack' | 'lease'

/** The state of a key of a store that computes. Whole numbers, below 2^53. */
export interface CasStepState {
  /** Of a rate the microsecond in which the debt is paid, of a window its beginning. */
  readonly at: number
  /** Of a rate the units of debt beyond `at`, of a window its count. */
  readonly rest: number
  /** The numbers that it was written under, as in {@link CasStep}. */
  readonly unit: number
  readonly pace: number
  readonly cap: number
  /** Booked or penalized beyond what can be spent. */
  readonly ahead: boolean
  /** End of the ban, 0 without one. */
  readonly blocked: number
}

/**
 * One step on one key, computed by the store as `lua/steps/rate.lua` and `fixed-window.lua` do: integers only.
 *
 * A rate has a debt in units: `pace` flow back a microsecond, a token is `unit`, and a take passes up to `cap`. A window (`pace` 0) of `unit`
 * microseconds has a count, up to `cap`.
 */
export interface CasStep {
  readonly key: string
  readonly verb: CasStepVerb
  readonly unit: number
  readonly pace: number
  readonly cap: number
  /** Debt that a leased key keeps. */
  readonly lent: number
  /** In units of a rate, tokens of a window, microseconds of a block; of `lease` the most tokens. */
  readonly amount: number
  /** Of `take`: how many times, as many as pass. */
  readonly times: number
  /** Of `reserve` the longest wait, of `giveBack` the time that it was for, microseconds; of `lease` the fewest useful tokens. */
  readonly bound: number
  /** Of `giveBack`: the units of the booking, the debt that it left, and when it was made. */
  readonly booking: readonly [units: number, debt: number, atUs: number]
  /** The state of a swapped value, which counts while the key has that version. */
  readonly from: { readonly version: CasVersion; readonly state: CasStepState } | undefined
}

/** What a step left. */
export interface CasStepped {
  /** How many times it was made: of `take` up to `times`, of `lease` the tokens, else 0 or 1. */
  readonly done: number
  readonly state: CasStepState
  /** Units of debt of a rate, now. */
  readonly debt: number
  readonly nowUs: number
}

/** Why no step was made: the key holds a swapped value; or it is locked by others, or was made by them at the same moment. */
export type CasStepRefusal = { readonly key: string; readonly swapped: CasState } | 'busy'

/**
 * Any store that can compare and swap, as {@link casStore} uses it. Values are bytes of the limiter's own.
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
  /**
   * Of a store that computes: makes steps of rates and fixed windows on its own clock, each group for itself, of which all are made or none; of `take`
   * in a group of several all pass or none. Resolves to the outcomes of the steps of each group, or why the group was not made. The keys of one call differ, except those of
   * groups of takes. `undefined`: it cannot now; then states are swapped.
   */
  step?(
    groups: readonly (readonly CasStep[])[],
    signal?: CancelSignal,
  ): Promise<readonly (readonly CasStepped[] | CasStepRefusal)[] | undefined>
  /**
   * How many connections were opened so far and have answered; undefined while calls wait for one. Where it is there, the timeout of calls that
   * waited for a connection starts anew, for up to a second: the store had not been asked yet.
   */
  connectionsOpened?(): number | undefined
  /** The states of several keys, in their order, at one moment or not. */
  readAll?(keys: readonly string[], signal?: CancelSignal): Promise<readonly CasState[]>
}
