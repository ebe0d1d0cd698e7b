import { conformance, IS_LONG_RUN, shortOrLong } from 'sluicegate-testkit'
import { overCluster } from 'sluicegate-testkit/stores/store-conformance.js'

// The policy is changed at the primary, see cluster-limiter.alone.test.ts.
conformance('exact, a primary', overCluster('exact'), {
  source: 'store',
  own: false,
  share: shortOrLong(0.002, 0.01),
  shared: IS_LONG_RUN ? ['verbs', 'blocks', 'budget', 'time', 'reserving', 'keys'] : ['verbs', 'budget'],
  ...(!IS_LONG_RUN && { algorithms: ['token bucket', 'all-of'] }),
})
