export { memoryStore } from './memory-store.js'
export { storeConformance } from './store-conformance.js'
