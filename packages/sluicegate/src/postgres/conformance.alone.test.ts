import { after } from 'node:test'
import { type ConformanceChoice, conformance, IS_LONG_RUN, type MakeLimiter, PostgresProcess, shortOrLong } from 'sluicegate-testkit'
import { LimiterHost } from 'sluicegate-testkit/twins/synchronous-limiter.js'

/** As over Redis, and for the same reasons: a store has no table, and no timers move while this thread sleeps. */
const SHARED: ConformanceChoice['shared'] = ['verbs', 'blocks', 'budget', 'time', 'misuse', 'reserving', 'denialEvents', 'updates']
const LESS: ConformanceChoice['shared'] = ['verbs', 'budget', 'time', 'updates']

const server = await PostgresProcess.start()
const host = new LimiterHost(server.url)
after(async () => {
  await host.stop()
  await server.stop()
})

const store = { source: 'store', own: false, share: shortOrLong(0.005, 0.02), updatesLazily: true } as const

function make(mode: 'exact' | 'leased'): MakeLimiter {
  return (policy, { clock, hotKeys = 0 }) => host.make(policy, { hotKeys, mode, outage: 'closed', timeoutMs: 60_000 }, clock)
}

conformance('exact, PostgreSQL', make('exact'), { ...store, algorithms: ['token bucket', 'gcra', 'sliding log', 'all-of'], shared: SHARED })
conformance('exact, PostgreSQL', make('exact'), {
  ...store,
  algorithms: ['fixed window', 'sliding window'],
  shared: IS_LONG_RUN ? SHARED : LESS,
})
// Time runs back for the keys of a store, but not for those of the oracle: a permit lasts as long as it was to.
conformance('exact, PostgreSQL', make('exact'), { ...store, algorithms: ['concurrency'], shared: SHARED, furthestBackMs: 0 })
conformance('exact, PostgreSQL', make('exact'), { ...store, algorithms: ['token bucket', 'sliding log', 'all-of'], shared: ['keys'] })
conformance('exact, PostgreSQL', make('exact'), { ...store, algorithms: ['all-of'], shared: [], own: true })

// What a lease leaves as it is.
conformance('leased, PostgreSQL', make('leased'), { ...store, algorithms: ['token bucket', 'fixed window'], shared: ['keys'] })
conformance('leased, PostgreSQL', make('leased'), { ...store, algorithms: ['fixed window'], shared: ['denialEvents', 'updates'] })
conformance('leased, PostgreSQL', make('leased'), { ...store, algorithms: ['fixed window', 'sliding log'], shared: ['misuse', 'blocks'] })
