import { PolicyError } from '../errors.js'
import { storeOf } from '../shared/limiter-over.js'
import type { OpenStore, RegionStore, StoreUse } from '../shared/open-store.js'
import { checkStore, OPEN, type Store } from '../shared/store.js'
import { preciseClock } from '../time/clock.js'
import { RegionBackends } from './region-backends.js'
import { checkedRegion, type RegionOptions, type RegionSettings } from './region-options.js'
import { shareOfRegion } from './region-share.js'

const NO_SPLIT =
  "of levels needs tooSmall: 'home': of those that calls with and without a plan share, a region would decide some here and some at the home"
const STORES = 'give redis(client), postgres(pool) or casStore(mine)'
/** Overrides of a home may be so much older than `maxAge` while they are checked. */
const OVERRIDES_BESIDE_MS = 10_000

/**
 * A store made of two: the budgets have their home in one that all regions share, and this region holds tokens of them in its own.
 *
 * @throws {PolicyError} on an unknown option or one out of range, and where one of the stores cannot be what it is given as.
 * @example
 * const store = region({ name: 'eu-west', local: redis(here), home: redis(there) })
 * const limiter = createLimiter(tokenBucket({ limit: 10_000, window: '1m', name: 'api' }), { store })
 */
export function region(given: RegionOptions): Store {
  const options = checkedRegion(given)
  const { name, timeoutMs } = options
  const at = openersOf(options)
  // What they are is known without a limiter.
  at({ clock: preciseClock(), timeoutMs })
  return storeOf({
    name: `region ${name}`,
    open: (use) => {
      if (use.hasPlans && options.tooSmall === 'share') throw new PolicyError('OPTION_INVALID', 'policyFor', undefined, NO_SPLIT)
      const { local, home, store } = at(use)
      return {
        // A take may wait for the region's store and for the home.
        timeoutMs: 2 * use.timeoutMs + timeoutMs,
        overridesOf: home.overridesOf,
        besideMs: OVERRIDES_BESIDE_MS,
        created: local.created,
        under: (policy, horizonMs) => {
          const { crossSlot: _, ...own } = local.under(policy, horizonMs)
          const parts = { home: home.under(policy, horizonMs), store, options, horizonMs, clock: use.clock }
          const backends = new RegionBackends(parts, policy)
          return {
            ...own,
            region: backends,
            connect: (each) => backends.connect(each),
            countedShare: (counted) => shareOfRegion(counted(), backends.share),
          }
        },
      }
    },
  })
}

/**
 * Opens both stores for a limiter. `store`: what the local one keeps for the region.
 *
 * @throws {PolicyError} `OPTION_INVALID`, also each time the stores are opened.
 */
function openersOf({
  name,
  local,
  home,
  timeoutMs,
}: RegionSettings): (use: StoreUse) => { local: OpenStore; home: OpenStore; store: RegionStore } {
  const [openLocal, openHome] = [opener('local', local), opener('home', home)]
  return (use) => {
    const here = openLocal(use)
    const there = openHome({ ...use, timeoutMs, isHome: true })
    const store = here.regionStore?.(name)
    if (store === undefined) throw new PolicyError('OPTION_INVALID', 'local', local, `cannot be ${local.name}: ${STORES}`)
    if (there.isHomeable !== true) {
      throw new PolicyError('OPTION_INVALID', 'home', home, `cannot be ${home.name}: ${STORES}`)
    }
    return { local: here, home: there, store }
  }
}

/** @throws {PolicyError} `OPTION_INVALID` */
function opener(option: 'local' | 'home', store: Store): (use: StoreUse) => OpenStore {
  checkStore(option, store)
  return store[OPEN] as (use: StoreUse) => OpenStore
}
