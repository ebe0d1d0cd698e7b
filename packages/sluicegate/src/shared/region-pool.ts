import type { CancelSignal } from './backend.js'

/** Tokens that end together, by the clock of the region's store. */
export interface Lot {
  readonly tokens: number
  readonly endUs: number
  /** By which the home takes them back; 0 where only the process that leased them may return them. */
  readonly grantId: number
}

/** Constants of a draw, in microseconds. */
export interface DrawTerms {
  /** Between renewals of a key with steady demand. */
  readonly periodUs: number
  /** How long a renewal takes, as far as is known. */
  readonly leadUs: number
  /** How long one process alone renews a key. */
  readonly claimUs: number
  /** How long tokens last. */
  readonly leaseUs: number
  /** The time of the region's store, as this process foresees it; 0 while it does not know. Where the store is ahead, its clock was set. */
  readonly foreseenUs: number
  /** Whether a key of any pace is renewed. */
  readonly isEager: boolean
}

/** What the region knows about a key that is due, for the process that renews it. */
export interface RenewalClaim {
  /** Tokens requested a microsecond in the region. */
  readonly pace: number
  /** The same in all regions; 0 while that is unknown. */
  readonly total: number
  /** How long ago the key was renewed before, in microseconds. */
  readonly agoUs: number
  /** Tokens admitted without the home: the claimant charges them there. */
  readonly owed: number
}

/** A request for tokens that the region holds. */
export interface Draw {
  readonly want: number
  /** With fewer there, none is drawn. */
  readonly least: number
  /** Tokens that callers requested meanwhile, denied ones among them; undefined for a look that changes nothing. */
  readonly demand: number | undefined
}

/** What a draw brought. Durations are microseconds. */
export interface Drawn {
  /** The time of the region's store. */
  readonly nowUs: number
  readonly tokens: number
  /** The drawn tokens, by their ends. */
  readonly lots: readonly Lot[]
  /** Tokens left in the region. */
  readonly left: number
  /** Given where this process is to renew the key. */
  readonly claim: RenewalClaim | undefined
  /** How long the fewest useful tokens are denied, or until a renewal on its way should have come; 0 where only the home knows. */
  readonly deniedUs: number
  /** How long the key is banned. */
  readonly blockedUs: number
  /** Tokens left at the home, and until the key was full there, when it last answered. */
  readonly rest: number
  readonly fullUs: number
  /** Whether the home had less than was wanted. */
  readonly isScarce: boolean
}

/** What the home answered about a key, for all processes of the region. Durations are microseconds. */
export interface Deposit {
  /** A renewal; false for what a take learned. */
  readonly isRenewal: boolean
  /** When the renewal was claimed, by the clock of the region's store. */
  readonly claimedUs: number
  /** How long the tokens last from then on. */
  readonly lastUs: number
  /** How long ago that was, by the clock of this process. */
  readonly agoUs: number
  readonly tokens: number
  readonly wanted: number
  readonly least: number
  readonly deniedUs: number
  readonly blockedUs: number
  readonly rest: number
  readonly fullUs: number
  readonly total: number | undefined
  readonly periodUs: number
  /** Of the tokens, as {@link Lot} has it. */
  readonly grantId: number
}

/**
 * What one region holds of the keys of one policy. Each method is one atomic step in the region's store, and rejects with `StoreError`
 * `OUTAGE` when that cannot be reached.
 */
export interface RegionPool {
  draw(key: string, draw: Draw, terms: DrawTerms, signal?: CancelSignal): Promise<Drawn>
  /** @returns when the deposited tokens end, by the clock of the region's store. */
  deposit(key: string, deposit: Deposit): Promise<number>
  /** Voids what is left of the tokens with this end; `left` were there. */
  reclaim(key: string, endUs: number): Promise<number>
  /**
   * Tokens that were drawn, and not spent.
   *
   * @returns false where they ended too long ago: only the home can use them.
   */
  back(key: string, lot: Lot): Promise<boolean>
  /**
   * Tokens admitted without the home; fewer than none where some came back.
   *
   * @returns since when the store knows the key: another time than before says that it lost its data.
   */
  owe(key: string, tokens: number): Promise<number>
  /** @returns tokens owed, which are to be charged at the home now. */
  settle(key: string): Promise<number>
  /** The home did not answer a renewal: nothing is known of it, and what its claim owed is owed still. */
  lost(key: string, owed: number): Promise<unknown>
  /** Denies everything for `us` microseconds and voids the tokens; 0 lifts it. */
  block(key: string, us: number): Promise<unknown>
  reset(key: string): Promise<unknown>
}
