import { fleet, turns } from 'sluicegate-testkit/cluster/channel-pair.js'
import { givenUpWaits } from 'sluicegate-testkit/suites/given-up-waits.js'

givenUpWaits(
  'cluster',
  (policy) => {
    const { clock, served, limiter } = fleet(policy, { worker: { timeout: 60_000, outage: 'closed' } })
    return {
      limiter,
      witness: served.limiter,
      isApart: true,
      settle: () => turns(40),
      advance: async (ms) => {
        clock.advance(ms)
        await turns(20)
      },
      stop: () => {
        limiter.close()
        served.close()
      },
    }
  },
  300,
)
