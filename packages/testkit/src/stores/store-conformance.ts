import type { MakeLimiter } from '../conformance/fixture.js'
import { type ConformanceChoice, conformance } from '../conformance.js'
import { IS_LONG_RUN } from '../run-length.js'
import type { LimiterHost } from '../twins/synchronous-limiter.js'

/** As over Redis, and for the same reasons: a store has no table, and no timers move while this thread sleeps. */
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
/** A short run has one of them: all are held against the oracle over the store, and those over Redis have this suite. */
const WINDOWS: NonNullable<ConformanceChoice['algorithms']> = ['gcra', 'sliding log', 'fixed window', 'sliding window']

/** How much of the long random runs is made: of its long run, and of `keys`. */
export interface StoreShare {
  readonly share: number
  readonly keysShare: number
  /** Whether windows are asked less, and a short run only samples: what decides is the same over every store, and each has the kit for stores and the oracle as well. */
  readonly sampled?: boolean
}

/** The one suite on limiters over a store, exact and leased; a short run asks less of windows, which their own oracle has at length. */
export function conformanceOverStore(name: string, host: LimiterHost, { share, keysShare, sampled = false }: StoreShare): void {
  const make = (mode: 'exact' | 'leased'): MakeLimiter => {
    return (policy, { clock, hotKeys = 0 }) => host.make(policy, { hotKeys, mode, outage: 'closed', timeoutMs: 60_000 }, clock)
  }
  const store = { source: 'store', own: false, share, updatesLazily: true } as const
  const exact = (choice: ConformanceChoice): void => conformance(`exact, ${name}`, make('exact'), { ...store, ...choice })
  const leased = (choice: ConformanceChoice): void => conformance(`leased, ${name}`, make('leased'), { ...store, ...choice })

  if (sampled && !IS_LONG_RUN) {
    exact({ algorithms: ['token bucket', 'all-of'], shared: LESS })
    leased({ algorithms: ['fixed window'], shared: ['updates', 'denialEvents'] })
    return
  }
  exact({ algorithms: ['token bucket'], shared: SHARED })
  exact({ algorithms: ['all-of'], shared: IS_LONG_RUN ? SHARED : LESS })
  exact({ algorithms: IS_LONG_RUN ? WINDOWS : ['sliding log'], shared: IS_LONG_RUN && !sampled ? SHARED : LESS })
  // Time runs back for the keys of a store, but not for those of the oracle: a permit lasts as long as it was to.
  exact({ algorithms: ['concurrency'], shared: SHARED, furthestBackMs: 0 })
  exact({
    algorithms: IS_LONG_RUN ? ['token bucket', 'sliding log', 'all-of'] : ['sliding log', 'all-of'],
    shared: ['keys'],
    share: keysShare,
  })
  exact({ algorithms: ['all-of'], shared: [], own: true })

  // What a lease leaves as it is.
  leased({ algorithms: IS_LONG_RUN ? ['token bucket', 'fixed window'] : ['token bucket'], shared: ['keys'], share: keysShare })
  leased({ algorithms: ['fixed window'], shared: ['denialEvents', 'updates'] })
  leased({ algorithms: IS_LONG_RUN ? ['fixed window', 'sliding log'] : ['fixed window'], shared: ['misuse', 'blocks'] })
}
