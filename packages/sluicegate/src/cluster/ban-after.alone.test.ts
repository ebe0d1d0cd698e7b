import { channelPair, START_MS } from 'sluicegate-testkit/cluster/channel-pair.js'
import { banSuite } from 'sluicegate-testkit/suites/ban-suite.js'
import { createLimiter } from '../create-limiter.js'
import { manualClock } from '../time/clock.js'
import { primary } from './primary.js'
import { serveLimiter } from './serve-limiter.js'

banSuite({
  name: 'node:cluster',
  make: (policy, banAfter, more = {}) => {
    const clock = manualClock(START_MS)
    const pairs = [channelPair(), channelPair()]
    // That of the state stands still: as with a server, only bans are timed by the clock of the test.
    const served = serveLimiter(policy, { clock: manualClock(START_MS) })
    for (const { worker } of pairs) served.serve(worker)
    const [one, other] = pairs.map(({ parent }) =>
      createLimiter(policy, { store: primary({ process: parent }), clock, outage: 'closed', banAfter, ...more }),
    )
    return { one, other, clock } as never
  },
})
