import assert from 'node:assert/strict'
import { test } from 'node:test'
import { manualClock, preciseClock } from '../clock.js'
import { fixedWindow, type Policy } from '../index.js'
import type { FleetLimiter } from '../shared/fleet-limiter.js'
import { channelPair } from '../testing/channel-pair.js'
import { START_MS } from '../testing/cluster-fixture.js'
import { layerSuite } from '../testing/layer-suite.js'
import { listAndShadowSuite } from '../testing/list-and-shadow-suite.js'
import { createClusterLimiter } from './create-cluster-limiter.js'
import { serveLimiter } from './serve-limiter.js'

for (const mode of ['exact', 'leased'] as const) {
  for (const suite of [layerSuite, listAndShadowSuite])
    suite({
      name: `node:cluster, ${mode}`,
      make: (policy, options, served = [policy]) => {
        // What is leased and not spent comes back as time goes by.
        const clock = mode === 'leased' ? preciseClock() : manualClock(START_MS)
        const { worker, parent } = channelPair()
        for (const each of served) serveLimiter(each, { clock, mode }).serve(worker)
        return createClusterLimiter(policy, { process: parent, clock, outage: 'closed', ...options })
      },
    })
}

test('a tier whose name another limiter has leaves nothing open', async () => {
  const { worker, parent } = channelPair()
  const clock = manualClock(START_MS)
  const [own, one, taken] = ['own', 'one', 'taken'].map((name) => fixedWindow({ limit: 3, window: '1d', name })) as [Policy, Policy, Policy]
  for (const policy of [own, one, taken]) serveLimiter(policy, { clock }).serve(worker)
  using other = createClusterLimiter(taken, { process: parent, clock })
  const make = (): FleetLimiter => createClusterLimiter(own, { process: parent, clock, policyFor: () => one, policies: [one, taken] })
  assert.throws(make, { name: 'PolicyError', code: 'NAME_INVALID' })
  other.close()
  // The names are free again.
  using limiter = make()
  assert.equal((await limiter.take('k')).policy, 'one')
})
