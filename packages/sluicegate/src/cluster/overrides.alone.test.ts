import assert from 'node:assert/strict'
import { test } from 'node:test'
import { channelPair, START_MS } from 'sluicegate-testkit/cluster/channel-pair.js'
import { overrideSuite, STALE_MS } from 'sluicegate-testkit/suites/override-suite.js'
import { createLimiter } from '../create-limiter.js'
import { fixedWindow } from '../index.js'
import { manualClock } from '../time/clock.js'
import { primary } from './primary.js'
import { serveLimiter } from './serve-limiter.js'

for (const mode of ['exact', 'leased'] as const) {
  overrideSuite({
    name: `node:cluster, ${mode}`,
    isLeased: mode === 'leased',
    make: (policy, options = {}) => {
      const clock = manualClock(START_MS)
      const pairs = [channelPair(), channelPair()]
      const served = serveLimiter(policy, { clock, mode, overrides: true })
      const tier = options.policyFor?.('any')
      const others = tier === undefined ? [] : [serveLimiter(tier, { clock, mode })]
      for (const { worker } of pairs) for (const each of [served, ...others]) each.serve(worker)
      const [one, other] = pairs.map(({ parent }) =>
        createLimiter(policy, {
          store: primary({ process: parent }),
          clock,
          outage: 'closed',
          overrides: { maxAge: STALE_MS },
          ...options,
        }),
      )
      return { one, other, clock } as never
    },
  })
}

const OWN = fixedWindow({ limit: 30, window: '365d', name: 'own' })
const PRO = fixedWindow({ limit: 60, window: '365d', name: 'pro' })

test('the primary sets overrides for workers that come later, too', async () => {
  const clock = manualClock(START_MS)
  const served = serveLimiter(OWN, { clock, overrides: true })
  served.overrides.set('acme', PRO)
  const { worker, parent } = channelPair()
  served.serve(worker)
  using limiter = createLimiter(OWN, { store: primary({ process: parent }), clock, outage: 'closed', overrides: true })
  assert.deepEqual([(await limiter.take('acme')).policy, (await limiter.take('else')).policy], ['pro', 'own'])
})

test('a primary that keeps no overrides says so to those who set one, and takes go on without', async () => {
  const clock = manualClock(START_MS)
  const { worker, parent } = channelPair()
  serveLimiter(OWN, { clock }).serve(worker)
  using limiter = createLimiter(OWN, { store: primary({ process: parent }), clock, outage: 'closed', overrides: true })
  assert.equal((await limiter.take('acme')).policy, 'own')
  await assert.rejects(limiter.overrides.set('acme', PRO), { code: 'OUTAGE', message: /give it overrides: true as well/ })
})
