import { equalLevels } from 'sluicegate-testkit/stores/equal-levels.js'
import { conformanceOverStore } from 'sluicegate-testkit/stores/store-conformance.js'
import { overObjects } from 'sluicegate-testkit/stores/store-limiters.js'
import { KeptObjects } from 'sluicegate-testkit/workers/kept-storage.js'
import { durableObjects } from './durable-objects.js'
import { limiterObject } from './limiter-object.js'

conformanceOverStore('objects', overObjects, {
  share: 0.002,
  inShortRun: ['sliding window'],
  // Each key has an object of its own. A Worker times no wait, which `misuse` tries as well, and the policy is the object's own.
  without: ['waiting', 'misuse', 'updates', 'denialEvents', 'lapsedHolds', 'heldLevels', 'updatedHolds', 'holdsById'],
})

equalLevels(
  'objects',
  (policies) =>
    durableObjects(new KeptObjects(limiterObject(policies, { mode: 'exact' })), { waitUntil: () => undefined, objectFor: () => 'all' }),
  // An object has one policy of a name, which is changed where it is deployed.
  { options: { mode: 'exact' }, without: ['plans', 'update', 'newcomer', 'byId', 'unnamed'] },
)
