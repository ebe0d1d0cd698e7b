export { createLedger, type Ledger } from './ledger.js'
export type { LedgerRecord, LedgerSink } from './ledger-record.js'
export { replayedLedger } from './replayed-ledger.js'
