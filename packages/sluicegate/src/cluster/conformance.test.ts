import { shortOrLong } from 'sluicegate-testkit'
import { conformanceOverStore } from 'sluicegate-testkit/stores/store-conformance.js'
import { overPrimary } from 'sluicegate-testkit/stores/store-limiters.js'

conformanceOverStore('a primary', overPrimary, {
  share: shortOrLong(0.002, 0.01),
  inShortRun: ['sliding log', 'all-of'],
  // The policy is changed at the primary, which is this process as well and publishes its own denials: see cluster-limiter.test.ts.
  without: ['updates', 'denialEvents', 'holdsById'],
  hasTable: true,
})
