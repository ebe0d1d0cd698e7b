import { shortOrLong } from 'sluicegate-testkit'
import { conformanceOverStore } from 'sluicegate-testkit/stores/store-conformance.js'
import { overMemoryStore } from 'sluicegate-testkit/stores/store-limiters.js'

conformanceOverStore('a store', overMemoryStore, {
  share: shortOrLong(0.005, 0.01),
  inShortRun: ['token bucket', 'all-of'],
  own: ['token bucket', 'fixed window', 'sliding window', 'all-of'],
})
