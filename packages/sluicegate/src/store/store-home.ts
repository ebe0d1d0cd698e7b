import type { Home } from '../regions/home.js'
import { type HomeParts, MAKE_HOME, type StoreHome } from '../regions/store-home.js'
import { ONE_PLACE } from '../shared/calls/call-guard.js'
import type { CasStore } from './cas-store.js'
import { checkStore, LOST_AFTER, notTogether } from './create-store-limiter.js'
import { backendIn } from './stepping-backend.js'
import { StoreCalls } from './store-calls.js'
import { StoreLanes } from './store-lanes.js'

/**
 * Any store that can compare and swap as the home of budgets that several regions share: for the option `home.store` of `createRedisLimiter`,
 * whose `client` is the Redis of the region. The store does not count regions: give each its `share`.
 *
 * @throws {PolicyError} `OPTION_INVALID` for what is no store
 * @example
 * const limiter = createRedisLimiter(policy, { client, home: { store: storeHome(store), region: 'eu-west', share: 0.5 } })
 */
export function storeHome(store: CasStore): StoreHome {
  checkStore(store)
  return { [MAKE_HOME]: (parts) => homeIn(store, parts) }
}

function homeIn(store: CasStore, { prefix, timeoutMs, clock }: HomeParts): Home {
  const lanes = new StoreLanes(new StoreCalls(store, clock, timeoutMs * LOST_AFTER))
  return {
    places: ONE_PLACE,
    sharesGrants: false,
    connect: (policy, lengthOf) => {
      if (policy.policies !== undefined && store.swapAll === undefined) {
        throw notTogether(store, 'home.store', `it cannot charge the policies of ${policy.name} together: give them a limiter each`)
      }
      return backendIn(lanes, policy, lengthOf, prefix)
    },
  }
}
