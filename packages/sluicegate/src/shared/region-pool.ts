import type { CancelSignal } from './backend.js'

/** Tokens that end together, by the clock of the region's store. */
export interface PoolBatch {
  readonly tokens: number
  readonly endUs: number
  /** By which the home takes them back; 0 where it does not. */
  readonly grantId: number
}

/** A request for tokens that the region holds. */
export interface Draw {
  readonly want: number
  /** With fewer there, none is drawn. */
  readonly least: number
  /** Tokens that callers requested meanwhile, denied ones among them; absent for a look that changes nothing. */
  readonly demand?: number | undefined
  /** How long a renewal takes, as far as this process knows. */
  readonly leadUs: number
  /** The time of the region's store, as this process foresees it; 0 while it does not know. Where the store is ahead, its clock was set. */
  readonly foreseenUs: number
}

/** What a draw brought, and how the key stands. Durations are microseconds. */
export interface Drawn {
  /** The time of the region's store. */
  readonly nowUs: number
  /** Since when it knows the key: another time than before says that it lost its data. */
  readonly bornUs: number
  readonly tokens: number
  /** The drawn tokens, by their ends. */
  readonly batches: readonly PoolBatch[]
  /** Tokens left in the region. */
  readonly left: number
  /** Until the fewest useful tokens may be drawn of tokens too few for all; 0 where that is not what denies them. */
  readonly meteredUs: number
  /** How long the key is banned. */
  readonly blockedUs: number
  /** How long the home is known to deny so many tokens. */
  readonly deniedUs: number
  readonly deniedCost: number
  /** Whether the home had less than was wanted. */
  readonly isScarce: boolean
  /** When the key was renewed last, and whether it is being renewed now. */
  readonly claimedUs: number
  readonly isRenewing: boolean
  /** Tokens left at the home, and until the key was full there, when it last answered. */
  readonly rest: number
  readonly fullUs: number
  /** Tokens requested a microsecond in the region, and in all of them; 0 while that is unknown. */
  readonly pace: number
  readonly total: number
  /** Tokens admitted without the home, which are to be charged there. */
  readonly debt: number
}

/** What the home answered about a key, for all processes of the region. Durations are microseconds. */
export interface HomeAnswer {
  /** When it was asked, or a renewal was claimed, by the clock of the region's store. */
  readonly askedUs: number
  /** Whether the home had less than was wanted. */
  readonly isScarce: boolean
  /** The fewest tokens of use, and how long they are denied. */
  readonly least: number
  readonly deniedUs: number
  readonly blockedUs: number
  /** Tokens left at the home, and until the key is full there. */
  readonly rest: number
  readonly fullUs: number
}

/** What a renewal brought. */
export interface Refill extends HomeAnswer {
  readonly tokens: number
  /** How long the tokens last from the claim on. */
  readonly endsUs: number
  /** How long ago that was, by the clock of this process. */
  readonly agoUs: number
  readonly grantId: number
  /** Tokens requested a microsecond in all regions, where that is known. */
  readonly total?: number | undefined
}

/**
 * What one region holds of the keys of one policy: tokens that the home charged ahead of need. Each method is one atomic step in the region's
 * store, and rejects with `StoreError` `OUTAGE` when that cannot be reached.
 */
export interface RegionPool {
  /** Takes tokens. */
  draw(key: string, draw: Draw, signal?: CancelSignal): Promise<Drawn>
  /**
   * This process is to renew the key, and no other for `claimUs`.
   *
   * @param claim.claimedUs the last renewal that this process knows of.
   * @returns the time; 0 where another process was first.
   */
  claim(key: string, claim: { readonly claimedUs: number; readonly claimUs: number }): Promise<number>
  /**
   * The home answered a renewal, or a take.
   *
   * @returns when the tokens end, by the clock of the region's store.
   */
  refill(key: string, answer: Refill | HomeAnswer): Promise<number>
  /**
   * Tokens that were drawn, and not spent.
   *
   * @returns false where they ended too long ago: only the home can use them.
   */
  giveBack(key: string, batch: PoolBatch): Promise<boolean>
  /** Takes what is left of the tokens with this end, for the home. */
  reclaim(key: string, endUs: number): Promise<number>
  /**
   * The home does not answer: `tokens` were admitted without it, fewer than none where some came back.
   *
   * @returns `bornUs`, as {@link Drawn} has it.
   */
  addDebt(key: string, tokens: number): Promise<number>
  /** @returns the debt, which is to be charged at the home now. */
  takeDebt(key: string): Promise<number>
  /** Denies everything for `us` microseconds; 0 lifts that. Tokens are void. */
  block(key: string, us: number): Promise<unknown>
}
