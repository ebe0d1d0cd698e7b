import { type ConformanceChoice, conformance } from '../conformance.js'
import { IS_LONG_RUN } from '../run-length.js'
import type { MakeOver } from './store-limiters.js'

/** As over Redis, and for the same reasons: a store has no table. */
const SHARED: NonNullable<ConformanceChoice['shared']> = [
  'verbs',
  'blocks',
  'budget',
  'time',
  'misuse',
  'reserving',
  'denialEvents',
  'updates',
]
const LESS: NonNullable<ConformanceChoice['shared']> = ['verbs', 'budget', 'updates']
const WINDOWS: NonNullable<ConformanceChoice['algorithms']> = ['gcra', 'sliding log', 'fixed window', 'sliding window']

/** How much of the long random runs is made: of its long run, and of `keys`. */
export interface StoreShare {
  readonly share: number
  readonly keysShare: number
  /** Whether all but a token bucket are asked less: what decides is the same over every store. */
  readonly sampled?: boolean
  /** Larger steps back of the clock are bounded by what the store computes itself, as those of Redis are. */
  readonly furthestBackMs?: number
}

/** The one suite on limiters over a store, exact and leased; a short run only samples: stores have their kit and the oracle as well. */
export function conformanceOverStore(
  name: string,
  make: MakeOver,
  { share, keysShare, sampled = false, furthestBackMs }: StoreShare,
): void {
  const store = {
    source: 'store',
    own: false,
    share,
    updatesLazily: true,
    ...(furthestBackMs !== undefined && { furthestBackMs }),
  } as const
  const exact = (choice: ConformanceChoice): void => conformance(`exact, ${name}`, make('exact'), { ...store, ...choice })
  const leased = (choice: ConformanceChoice): void => conformance(`leased, ${name}`, make('leased'), { ...store, ...choice })

  if (!IS_LONG_RUN) {
    exact({ algorithms: sampled ? ['all-of'] : ['token bucket', 'all-of'], shared: LESS })
    leased({ algorithms: ['fixed window'], shared: ['updates', 'denialEvents'] })
    return
  }
  exact({ algorithms: ['token bucket'], shared: SHARED })
  exact({ algorithms: ['all-of'], shared: sampled ? LESS : SHARED })
  exact({ algorithms: sampled ? ['sliding log', 'sliding window'] : WINDOWS, shared: sampled ? LESS : SHARED })
  // Time runs back for the keys of a store, but not for those of the oracle: a permit lasts as long as it was to.
  exact({ algorithms: ['concurrency'], shared: sampled ? LESS : SHARED, furthestBackMs: 0 })
  exact({ algorithms: sampled ? ['all-of'] : ['token bucket', 'sliding log', 'all-of'], shared: ['keys'], share: keysShare })
  exact({ algorithms: sampled ? ['all-of'] : ['all-of', 'fixed window', 'sliding window'], shared: [], own: true })

  // What a lease leaves as it is.
  leased({ algorithms: sampled ? ['fixed window'] : ['token bucket', 'fixed window'], shared: ['keys'], share: keysShare })
  leased({ algorithms: ['fixed window'], shared: ['denialEvents', 'updates'] })
  leased({ algorithms: ['fixed window', 'sliding log'], shared: ['misuse', 'blocks'] })
}
