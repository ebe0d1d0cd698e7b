import { after, afterEach } from 'node:test'
import { type ConformanceChoice, conformance, IS_LONG_RUN, type MakeLimiter, shortOrLong } from 'sluicegate-testkit'
import { allow, DOCUMENTED_COMMANDS, userUrl } from 'sluicegate-testkit/redis/allowed-user.js'
import { ownRedis } from 'sluicegate-testkit/redis/own-redis.js'
import { LimiterHost } from 'sluicegate-testkit/twins/synchronous-limiter.js'

/**
 * The one suite, on the exact store. Left out, because a store has none of it: tables and what goes when they are full (`table`), evictions
 * and counters of memory (`watching`); of updates what is true at one moment for all keys (a key is carried over when it is next touched,
 * see twins.test.ts and rolling-update.test.ts), long steps back of the clock (see clock-steps.test.ts), and what moves timers while it
 * waits for a promise (`waiting`), as this thread sleeps meanwhile. A token bucket is the same script as GCRA.
 */
const SHARED: ConformanceChoice['shared'] = ['verbs', 'blocks', 'budget', 'time', 'misuse', 'reserving', 'denialEvents', 'updates']
const AHEAD: ConformanceChoice['algorithms'] = ['gcra', 'all-of']
/** What a short run asks. */
const LESS: ConformanceChoice['shared'] = ['verbs', 'budget', 'updates']
/** In the long run only: they differ from the others in their steps, which twins.test.ts holds against the oracle. */
const WINDOWS: ConformanceChoice['algorithms'] = ['sliding log', 'fixed window', 'sliding window']
/** Larger steps back are distinguished from a value of another clock, or taken for one, depending on the policy. */
const FURTHEST_BACK_MS = 300

const redis = await ownRedis()
// As a user who may do what is documented and nothing else, but for this suite's own look at the keys.
await allow([redis.server], [...DOCUMENTED_COMMANDS, 'keys'], '*')
const host = new LimiterHost(userUrl(redis.server))
afterEach(() => redis.send('FLUSHALL'))
after(async () => {
  await host.stop()
  await redis.stop()
})

const KEYS_SHARE = shortOrLong(0.002, 0.005)
const store = { source: 'store', own: false, share: shortOrLong(0.005, 0.01), updatesLazily: true } as const

function make(mode: 'exact' | 'leased'): MakeLimiter {
  return (policy, { clock, hotKeys = 0 }) => host.make(policy, { hotKeys, mode, outage: 'closed', timeoutMs: 60_000 }, clock)
}

conformance('exact store', make('exact'), {
  ...store,
  algorithms: AHEAD,
  shared: IS_LONG_RUN ? SHARED : LESS,
  furthestBackMs: FURTHEST_BACK_MS,
})
if (IS_LONG_RUN)
  conformance('exact store', make('exact'), { ...store, algorithms: WINDOWS, shared: LESS, furthestBackMs: FURTHEST_BACK_MS })

// Time runs back for the keys of a store, but not for those of the oracle: a permit lasts as long as it was to.
conformance('exact store', make('exact'), { ...store, algorithms: ['concurrency'], shared: IS_LONG_RUN ? SHARED : LESS, furthestBackMs: 0 })

// Names are made alike for all: of a state in one key, and of several policies at once.
conformance('exact store', make('exact'), {
  ...store,
  algorithms: IS_LONG_RUN ? ['sliding log', 'all-of'] : ['all-of'],
  shared: ['keys'],
  share: KEYS_SHARE,
})

conformance('exact store', make('exact'), { ...store, algorithms: ['all-of'], shared: [], own: true })

// What a lease leaves as it is. Beside it the suite asks for the whole burst, of which a lease leaves a part to takes at the store.
const RATE_AND_WINDOW: ConformanceChoice['algorithms'] = IS_LONG_RUN ? ['token bucket', 'fixed window'] : ['fixed window']
conformance('leased store', make('leased'), { ...store, algorithms: RATE_AND_WINDOW, shared: ['keys'], share: KEYS_SHARE })
// A window withholds nothing: remaining and spent tokens are the same after an update.
conformance('leased store', make('leased'), { ...store, algorithms: ['fixed window'], shared: ['denialEvents', 'updates'] })
// Limits too small to be leased run exact by themselves.
const WINDOW_AND_LOG: ConformanceChoice['algorithms'] = IS_LONG_RUN ? ['fixed window', 'sliding log'] : ['sliding log']
conformance('leased store', make('leased'), { ...store, algorithms: WINDOW_AND_LOG, shared: ['misuse', 'blocks'] })
