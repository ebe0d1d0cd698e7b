import { PolicyError } from '../errors.js'
import { storeOf } from '../shared/limiter-over.js'
import { type OpenStore, openerOf, type StoreUse } from '../shared/open-store.js'
import type { Store } from '../shared/store.js'
import { Region } from './region-connect.js'
import { checkedRegion, type RegionOptions } from './region-options.js'
import { shareOfRegion } from './region-share.js'

const DEFAULT_TIMEOUT_MS = 1000
/** Overrides of a home may be so much older than `staleMs` while they are checked. */
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
  const { name, timeoutMs = DEFAULT_TIMEOUT_MS } = options
  const [openLocal, openHome] = [opener('local', options), opener('home', options)]
  return storeOf({
    name: `region ${name}`,
    open: (use) => {
      const local = openLocal(use)
      const home = openHome({ ...use, timeoutMs, isHome: true })
      const store = local.regionStore?.(name)
      if (store === undefined) {
        throw new PolicyError('OPTION_INVALID', 'local', options.local, 'cannot hold tokens for a region: give a Redis')
      }
      return {
        // A take may wait for the region's store and for the home.
        timeoutMs: 2 * use.timeoutMs + timeoutMs,
        overridesOf: home.overridesOf,
        besideMs: OVERRIDES_BESIDE_MS,
        created: local.created,
        under: (policy, horizonMs) => {
          const { crossSlot: _, ...own } = local.under(policy, horizonMs)
          const parts = { home: home.under(policy, horizonMs), store, options: { ...options, timeoutMs }, horizonMs, clock: use.clock }
          const made = new Region(parts, policy)
          return {
            ...own,
            region: made,
            connect: (each) => made.connect(each),
            countedShare: (counted) => shareOfRegion(counted(), made.share),
          }
        },
      }
    },
  })
}

/** @throws {PolicyError} `OPTION_INVALID` */
function opener(option: 'local' | 'home', { [option]: store }: RegionOptions): (use: StoreUse) => OpenStore {
  const open = openerOf(store)
  if (open !== undefined) return open
  throw new PolicyError('OPTION_INVALID', option, store, 'must be a store such as redis(client) or postgres(pool)')
}
