import type { LedgerRecord } from './ledger-record.js'

/** Work whose pieces are summed until the next batch. */
export interface SummedWork {
  /** Writes what it has spent since the last time, if there is room; notes a hold that has lapsed. False: it need not be asked again. */
  sum(): boolean
}

/** What happened, before it has a number. */
export type LedgerEntry = Omit<LedgerRecord, 'writer' | 'number' | 'atMs'>

/** What a limiter writes to. */
export interface LedgerWriter {
  /** Whether one more record finds room. */
  readonly hasRoom: boolean
  write(entry: LedgerEntry): void
  /** Asks the work for what it has spent with each batch. */
  follow(work: SummedWork): void
  unfollow(work: SummedWork): void
  nextHold(): number
}
