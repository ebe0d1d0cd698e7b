import { shortOrLong } from 'sluicegate-testkit'
import { conformanceOverStore, overMemoryStore } from 'sluicegate-testkit/stores/store-conformance.js'

conformanceOverStore('a store', overMemoryStore, { share: shortOrLong(0.005, 0.01), keysShare: shortOrLong(0.005, 0.01) })
