import type { Decision } from '../decision/decision.js'
import type { AnswerOf } from '../decision/permit.js'
import { PolicyError } from '../errors.js'
import { checkedPolicy } from '../policy/checked-policy.js'
import type { Policy } from '../policy/policy.js'
import { ONE_PLACE } from '../shared/calls/call-guard.js'
import type { FleetLimiter } from '../shared/fleet-limiter.js'
import { layeredShared } from '../shared/layers/layered-shared.js'
import { CrossSlotBackend } from '../shared/leases/cross-slot-backend.js'
import { GivenShare, UNKNOWN_SHARE } from '../shared/outage/local-share.js'
import { SharedLimiter } from '../shared/shared-limiter.js'
import { checkOptionNames, checkSharedOptions, leasedHorizonMs, SHARED_OPTIONS, type SharedOptions } from '../shared/shared-options.js'
import { type Clock, preciseClock } from '../time/clock.js'
import type { CasStore } from './cas-store.js'
import { backendIn } from './stepping-backend.js'
import type { StoreBackend } from './store-backend.js'
import { StoreCalls } from './store-calls.js'
import { StoreLanes } from './store-lanes.js'

/** What {@link createStoreLimiter} takes beside the policy. */
export interface StoreLimiterOptions extends Omit<SharedOptions, 'overrides'> {
  /**
   * Holds the state: made, connected and closed by you.
   *
   * @defaultValue required
   * @example createStoreLimiter(policy, { store })
   */
  readonly store: CasStore
  /**
   * Begins all keys in the store.
   *
   * @defaultValue `'sluicegate'`
   * @example createStoreLimiter(policy, { store, prefix: 'eu' })
   */
  readonly prefix?: string
  /**
   * `leased`: tokens of a key that this process takes often are leased, and nearly every take of it is decided here; any other take is a swap
   * in the store. `exact`: each take is a swap. A policy that cannot be leased runs exact.
   *
   * @defaultValue `'leased'`
   * @example createStoreLimiter(policy, { store, mode: 'exact' })
   */
  readonly mode?: 'leased' | 'exact'
  /**
   * `horizonMs`: how far ahead tokens are leased, 1 to 10,000 ms; the same in the whole fleet. A leased token may be spent for twice that.
   *
   * @defaultValue `{ horizonMs: 50 }`
   * @example createStoreLimiter(policy, { store, lease: { horizonMs: 200 } })
   */
  readonly lease?: {
    /** How far ahead tokens are leased, 1 to 10,000 ms, default 50; the same in the whole fleet. A leased token may be spent for twice that. */
    readonly horizonMs?: number
  }
  /**
   * For leases, waits and timeouts. It need not agree with the store's clock, by which keys are decided.
   *
   * @defaultValue `preciseClock()`
   * @example createStoreLimiter(policy, { store, clock: manualClock() })
   */
  readonly clock?: Clock
}

const OPTIONS: ReadonlySet<string> = new Set([
  'store',
  'prefix',
  'mode',
  'lease',
  'clock',
  ...SHARED_OPTIONS.filter((name) => name !== 'overrides'),
] as (keyof StoreLimiterOptions)[])

/** An answer that takes this many timeouts counts as lost. */
export const LOST_AFTER = 2

/**
 * Creates a limiter whose budget all processes share in any store that can compare and swap. The decision is made here, by the compiled core;
 * the store only keeps values.
 *
 * Keys in the store contain the policy's name. Give it a name, and its numbers may change while spent tokens stay spent.
 *
 * @throws {PolicyError} `OPTION_INVALID` for what is no store, `CROSS_SLOT` for an `allOf` that is not leased and a store without `swapAll`,
 * `LEASE_UNSUPPORTED` for `mode: 'leased'` and permits, and on an unknown option or one out of range.
 * @example
 * const limiter = createStoreLimiter(tokenBucket({ limit: 100, window: '1s', name: 'api' }), { store })
 * const { allowed } = await limiter.take('user:42')
 */
export function createStoreLimiter<P extends Policy>(policy: P, options: StoreLimiterOptions): FleetLimiter<AnswerOf<P> & Decision>
export function createStoreLimiter(policy: Policy, options: StoreLimiterOptions): FleetLimiter {
  return storeLimiter(policy, options)
}

/** @param drift the clocks of this process and the store may differ in pace by one part in this many. */
export function storeLimiter(policy: Policy, given: StoreLimiterOptions, drift?: number): FleetLimiter {
  const own = checkedPolicy(policy, 'policy', 'createStoreLimiter')
  const options = checkOptionNames(given, OPTIONS, '{ store }', undefined, 'createStoreLimiter()')
  const { store, prefix = 'sluicegate', clock = preciseClock(), timeoutMs = 100 } = options
  checkStore(store)
  if (typeof prefix !== 'string') throw new PolicyError('OPTION_INVALID', 'prefix', prefix, 'must be a string')
  checkSharedOptions(options)
  const lanes = new StoreLanes(new StoreCalls(store, clock, timeoutMs * LOST_AFTER, drift))
  const make = (each: Policy): FleetLimiter => limiterOver(lanes, each, { ...options, prefix }, clock)
  const noOverrides = (): never => {
    throw new PolicyError('OPTION_UNKNOWN', 'overrides', true, 'are not kept in a store: use policyFor')
  }
  return layeredShared(own, { make, makeOverride: ({ policy: each }) => make(each), overridesOf: noOverrides, clock }, options)
}

function limiterOver(
  lanes: StoreLanes,
  policy: Policy,
  options: StoreLimiterOptions & { readonly prefix: string },
  clock: Clock,
): FleetLimiter {
  const { mode, prefix, store } = options
  const horizonMs = leasedHorizonMs(policy, options)
  const hasTransactions = store.swapAll !== undefined
  /** Of each policy and each of its parts, which keep their names. */
  const inForce = new Map<string, StoreBackend>()
  return new SharedLimiter({
    policy,
    connect: (each, lengthOf) => {
      const isLeased = mode !== 'exact' && (each.policies ?? []).every((part) => lengthOf(part) > 0)
      if (each.policies !== undefined && !hasTransactions && !isLeased) throw notTogether(store, 'store', MUST_BE_LEASED)
      return backendIn(lanes, each, lengthOf, prefix, inForce)
    },
    ...(hasTransactions ? {} : { crossSlot: CrossSlotBackend }),
    places: hasTransactions ? ONE_PLACE : PLACES_APART,
    options,
    countedShare: () => new GivenShare(UNKNOWN_SHARE),
    horizonMs,
    lateAdvice: "raise lease.horizonMs in the whole fleet, or use mode 'exact'",
    clock,
  })
}

const MUST_BE_LEASED = 'allOf() must be leased: each of its policies has to give at least a token a lease'

/** The refusal of `allOf` over a store in which keys are not changed together. */
export function notTogether({ name }: CasStore, option: string, mend: string): PolicyError {
  return new PolicyError('CROSS_SLOT', option, name, `has no transactions (swapAll), so ${mend}`)
}

/** No two keys can be changed together, not even equal ones: NaN is unlike itself. The server is one. */
const PLACES_APART = { serverOf: () => 'store', slotOf: () => Number.NaN }

/** @throws {PolicyError} `OPTION_INVALID` */
export function checkStore(store: unknown): asserts store is CasStore {
  const { name, read, swap } = (store ?? {}) as Partial<CasStore>
  if (typeof name === 'string' && typeof read === 'function' && typeof swap === 'function') return
  throw new PolicyError('OPTION_INVALID', 'store', store, 'must be a CasStore: { name, read(key), swap({ key, version, value, ttlMs }) }')
}
