import { PolicyError } from '../errors.js'
import { checkOptions } from '../options/option-checks.js'
import { type Policy, policiesOf } from '../policy/policy.js'
import { storedNames } from '../policy/stored-name.js'
import { ONE_PLACE } from '../shared/calls/call-guard.js'
import { CrossSlotBackend } from '../shared/calls/cross-slot-backend.js'
import { storeOf } from '../shared/limiter-over.js'
import type { PolicyStore, RegionStore, StoreUse } from '../shared/open-store.js'
import { noteAccounts } from '../shared/shared-accounts.js'
import type { Store, StoreOptions } from '../shared/store.js'
import type { CasStore } from './cas-store.js'
import { backendIn } from './stepping-backend.js'
import { storeHead, storeKeys } from './store-key.js'
import { StoreLanes } from './store-lanes.js'
import type { SwapBackend } from './swap-backend.js'
import { TimedStore } from './timed-store.js'

const OPTIONS: readonly string[] = ['prefix'] satisfies (keyof StoreOptions)[]

/** An answer that takes this many timeouts counts as lost. */
const LOST_AFTER = 2

/**
 * Any store that can compare and swap as the store of limiters: you create, connect and close it. Decisions are made here, by the compiled core;
 * the store only keeps values.
 *
 * Keys in the store contain the policy's name. Give it a name, and its numbers may change while spent tokens stay spent. An `allOf` that is not
 * leased needs `swapAll`, or {@link createLimiter} throws `CROSS_SLOT`.
 *
 * @throws {PolicyError} `OPTION_INVALID` for what is no store, and on an unknown option or one out of range.
 * @example
 * const limiter = createLimiter(tokenBucket({ limit: 100, window: '1s', name: 'api' }), { store: casStore(mine) })
 * const { allowed } = await limiter.take('user:42')
 */
export function casStore(store: CasStore, options: StoreOptions = {}): Store {
  return casStoreOf(store, checkOptions(options, OPTIONS, "{ prefix: 'eu' }", 'casStore()'))
}

/**
 * @param drift the clocks of this process and the store may differ in pace by one part in this many.
 * @param place the client that keeps these values, where that is not the store itself; `within`: where it keeps them.
 */
export function casStoreOf(
  store: CasStore,
  { prefix = 'sluicegate' }: StoreOptions,
  drift?: number,
  { place, within = '' }: { readonly place: object; readonly within?: string } = { place: store },
): Store {
  checkStore(store)
  if (typeof prefix !== 'string') throw new PolicyError('OPTION_INVALID', 'prefix', prefix, 'must be a string')
  return storeOf({
    name: store.name,
    open: (use) => {
      const lanes = new StoreLanes(new TimedStore(store, use.clock, use.timeoutMs * LOST_AFTER, drift))
      const regionStore = (region: string): RegionStore => ({
        pools: { calls: lanes.calls, keysOf: (policy, name) => storeKeys(`${prefix}@${region}@pool`, policy, name) },
        connect: under(store, lanes, `${prefix}@${region}`, { ...use, isHome: true }).connect,
      })
      return {
        isHomeable: true,
        regionStore,
        under: () => under(store, lanes, prefix, use),
        created: (limiter) => noteAccounts(place, accountsOf(`${within}${prefix}`, limiter.policy), limiter),
      }
    },
  })
}

function under(store: CasStore, lanes: StoreLanes, prefix: string, { isHome = false }: StoreUse): PolicyStore {
  const hasTransactions = store.swapAll !== undefined
  /** Of each policy and each of its parts, which keep their names. */
  const inForce = new Map<string, SwapBackend>()
  return {
    places: {
      ...(hasTransactions || isHome ? ONE_PLACE : PLACES_APART),
      connectionsOpened: () => (store.connectionsOpened === undefined ? 0 : store.connectionsOpened()),
    },
    ...(hasTransactions ? {} : { crossSlot: CrossSlotBackend }),
    connect: (policy, lengthOf, names) => {
      if (policy.policies !== undefined && !hasTransactions && (isHome || policy.policies.some((part) => lengthOf(part) === 0))) {
        const mend = isHome ? `it cannot charge the policies of ${policy.name} together: give them a limiter each` : MUST_BE_LEASED
        throw new PolicyError('CROSS_SLOT', 'store', store.name, `has no transactions (swapAll), so ${mend}`)
      }
      return backendIn(lanes, policy, lengthOf, prefix, isHome ? undefined : inForce, names)
    },
  }
}

/** What begins the keys of each policy. */
function accountsOf(prefix: string, policy: Policy): readonly string[] {
  const names = storedNames(policy)
  return policiesOf(policy).map((each, i) => storeHead(prefix, each, names[i] as string))
}

const MUST_BE_LEASED = 'allOf() must be leased: each of its policies has to give at least a token a lease'

/** No two keys can be changed together, not even equal ones: NaN is unlike itself. The server is one. */
const PLACES_APART = { serverOf: () => 'store', slotOf: () => Number.NaN }

/** @throws {PolicyError} `OPTION_INVALID` */
function checkStore(store: unknown): asserts store is CasStore {
  const { name, read, swap } = (store ?? {}) as Partial<CasStore>
  if (typeof name === 'string' && typeof read === 'function' && typeof swap === 'function') return
  throw new PolicyError('OPTION_INVALID', 'store', store, 'must be a CasStore: { name, read(key), swap({ key, version, value, ttlMs }) }')
}
