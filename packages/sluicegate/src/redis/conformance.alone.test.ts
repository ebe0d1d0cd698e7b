import { after, afterEach } from 'node:test'
import { createClient } from '@redis/client'
import { type ConformanceChoice, conformance, IS_LONG_RUN, shortOrLong } from 'sluicegate-testkit'
import { allow, DOCUMENTED_COMMANDS, ownRedis, userUrl } from 'sluicegate-testkit/redis/own-redis.js'
import { overRedis } from 'sluicegate-testkit/stores/store-conformance.js'

/**
 * The one suite, on the exact store. Left out, because a store has none of it: tables and what goes when they are full (`table`), evictions
 * and counters of memory (`watching`); of updates what is true at one moment for all keys (a key is carried over when it is next touched,
 * see twins.test.ts and rolling-update.test.ts), and long steps back of the clock (see clock-steps.test.ts).
 * A token bucket is the same script as GCRA.
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
const client = createClient({ url: userUrl(redis.server) })
client.on('error', () => undefined)
await client.connect()
afterEach(() => redis.send('FLUSHALL'))
after(async () => {
  client.destroy()
  await redis.stop()
})

const KEYS_SHARE = shortOrLong(0.002, 0.005)
const store = { source: 'store', own: false, share: shortOrLong(0.005, 0.01), updatesLazily: true } as const

const make = overRedis(client)

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
