import { conformanceOverStore } from 'sluicegate-testkit/stores/store-conformance.js'
import { overObjects } from 'sluicegate-testkit/stores/store-limiters.js'

conformanceOverStore('objects', overObjects, {
  share: 0.002,
  inShortRun: ['sliding window'],
  // Each key has an object of its own. A Worker times no wait, which `misuse` tries as well, and the policy is the object's own.
  without: ['waiting', 'misuse', 'updates', 'denialEvents', 'lapsedHolds', 'heldLevels', 'updatedHolds', 'holdsById'],
})
