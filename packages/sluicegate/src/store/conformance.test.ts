import { shortOrLong } from 'sluicegate-testkit'
import { equalLevels } from 'sluicegate-testkit/stores/equal-levels.js'
import { conformanceOverStore } from 'sluicegate-testkit/stores/store-conformance.js'
import { overMemoryStore } from 'sluicegate-testkit/stores/store-limiters.js'
import { memoryStore } from '../store-testing/memory-store.js'
import { casStore } from './cas.js'

conformanceOverStore('a store', overMemoryStore, {
  share: shortOrLong(0.005, 0.01),
  inShortRun: ['token bucket', 'all-of'],
  own: ['token bucket', 'fixed window', 'sliding window', 'all-of'],
})

for (const mode of ['exact', 'leased'] as const) equalLevels(`${mode}, a store`, () => casStore(memoryStore()), { options: { mode } })
// Its levels are charged apart.
equalLevels(
  'leased, a store without transactions',
  () => {
    const store = memoryStore()
    return casStore({ name: 'simple', read: (key) => store.read(key), swap: (swap) => store.swap(swap) })
  },
  { without: ['byId'] },
)
