export { createLedger, type Ledger, type LedgerOptions, type LedgerStats } from './ledger.js'
export type { LedgerEvent, LedgerLevel, LedgerRecord, LedgerSink } from './ledger-record.js'
export { type LedgerBalance, replayedLedger } from './replayed-ledger.js'
