import { shortOrLong } from 'sluicegate-testkit'
import { channelPair } from 'sluicegate-testkit/cluster/channel-pair.js'
import { equalLevels } from 'sluicegate-testkit/stores/equal-levels.js'
import { conformanceOverStore } from 'sluicegate-testkit/stores/store-conformance.js'
import { overPrimary } from 'sluicegate-testkit/stores/store-limiters.js'
import { primary } from './primary.js'
import { serveLimiter } from './serve-limiter.js'

conformanceOverStore('a primary', overPrimary, {
  share: shortOrLong(0.002, 0.01),
  inShortRun: ['sliding log', 'all-of'],
  // The policy is changed at the primary, which is this process as well and publishes its own denials: see cluster-limiter.test.ts.
  without: ['updates', 'denialEvents', 'holdsById'],
  hasTable: true,
})

equalLevels(
  'a primary',
  (policies) => {
    const pair = channelPair()
    for (const policy of policies) serveLimiter(policy).serve(pair.worker)
    return primary({ process: pair.parent })
  },
  // It has one limiter of a name, whose policy it changes itself.
  { without: ['plans', 'update', 'newcomer', 'byId', 'unnamed'] },
)
