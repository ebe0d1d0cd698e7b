export type { CallRate } from './call-rate.js'
export { attachRateTable, createRateTable, restoreRateTable } from './create-rate-table.js'
export type { RateTable, RateTableHandle, Throttled } from './rate-table.js'
