export { createLedger, type Ledger, type LedgerStats } from './ledger.js'
export type { LedgerRecord, LedgerSink } from './ledger-record.js'
export { type LedgerBalance, replayedLedger } from './replayed-ledger.js'
