export { memoryStore } from './memory-store.js'
export { type StoreConformanceOptions, storeConformance } from './store-conformance.js'
