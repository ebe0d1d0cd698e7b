import type { Override } from '../layers/override-map.js'
import type { Policy } from '../policy/policy.js'
import type { Clock } from '../time/clock.js'
import type { BackedLimiter, BackedLimiterParts } from './backed-limiter.js'
import type { CallPlaces } from './calls/call-guard.js'
import type { CrossSlotBackend } from './calls/cross-slot-backend.js'
import type { OverrideStore } from './layers/override-cache.js'
import type { LocalShare } from './outage/local-share.js'
import type { Connect } from './policy-in-force.js'
import type { RegionPool } from './region-pool.js'
import type { SharedLimiter } from './shared-limiter.js'
import type { SwapCalls } from './swap-calls.js'

/** What a store is opened for: a limiter with its tiers and overrides. */
export interface StoreUse {
  readonly clock: Clock
  /** How long a call may take. */
  readonly timeoutMs: number
  /** Whether levels of it have plans: then it is opened under several policies of one name. */
  readonly hasPlans?: boolean
  /** Whether the store holds the budgets of several regions, which lease from it for all of their processes. */
  readonly isHome?: boolean
}

/** A store as one limiter uses it. */
export interface OpenStore {
  /** The store under one of the limiter's policies, whose numbers may change. @param override of a key whose policy it is. */
  under(policy: Policy, horizonMs: number, override?: Override): PolicyStore
  /** How long a call may take, if that is not what the limiter's option says. */
  readonly timeoutMs?: number | undefined
  /** Where the overrides of keys are kept; absent where they are not. */
  readonly overridesOf?: ((policy: Policy) => OverrideStore) | undefined
  /** Takes may go on with older overrides for so long while they are checked. */
  readonly besideMs?: number | undefined
  /** Whether another process says what a policy of a name is. */
  readonly isKnownByName?: boolean | undefined
  /** What a region of this name keeps here; absent where a region cannot be made of the store. */
  readonly regionStore?: ((region: string) => RegionStore) | undefined
  /** Whether it can hold the budgets of several regions: then any process may give back what another leased. */
  readonly isHomeable?: boolean | undefined
  /** Hears of the limiter once it is created. */
  readonly created?: ((limiter: SharedLimiter) => void) | undefined
}

/** What a {@link BackedLimiter} is made of that depends on the store alone. */
export interface PolicyStore extends Partial<Pick<BackedLimiterParts, 'lateAdvice' | 'isMadeLate' | 'region' | 'clock'>> {
  readonly connect: Connect
  /** Where keys are, as far as that is known. */
  readonly places: CallPlaces
  /** Of a store that charges several keys together only in one place. */
  readonly crossSlot?: typeof CrossSlotBackend | undefined
  /** How many limiters called of late with one of these accounts, of several the most; `id` is one of them from now on. */
  readonly countNodes?: ((names: readonly string[], id: string) => Promise<number>) | undefined
  /** The share in an outage, where the store knows better than by counting. */
  readonly countedShare?: ((counted: () => LocalShare) => LocalShare) | undefined
  /** How far ahead tokens are leased, where that is not what the options say. */
  readonly horizonMs?: number | undefined
  /** Creates the limiter, where it is one of another kind. */
  readonly limiter?: ((parts: BackedLimiterParts) => BackedLimiter) | undefined
}

/** What the store of a region keeps for it. */
export interface RegionStore {
  /**
   * What the region holds of the keys of one policy, whose account has the name; of a store that only compares and swaps the calls for that, and
   * where it keeps a key.
   */
  readonly pools:
    | ((policy: Policy, name: string) => RegionPool)
    | { readonly calls: SwapCalls; keysOf(policy: Policy, name: string): (key: string) => string }
  /** The region's share of a policy. */
  readonly connect: Connect
}
