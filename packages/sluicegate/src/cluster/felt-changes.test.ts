import { fleet, turns } from 'sluicegate-testkit/cluster/channel-pair.js'
import { feltChanges } from 'sluicegate-testkit/suites/layer-suite.js'

feltChanges(
  'cluster',
  (policy) => {
    const { served, limiter } = fleet(policy, { worker: { timeout: 60_000, outage: 'closed' } })
    return {
      limiter: limiter as never,
      settle: () => turns(80),
      stop: () => {
        limiter.close()
        served.close()
      },
    }
  },
  // What a worker has booked stays booked when the primary changes its policy.
  ['reset', 'refund'],
)
