import { manualClock, preciseClock } from '../clock.js'
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
