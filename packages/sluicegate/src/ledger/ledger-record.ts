/**
 * What happened: work was opened, spent, closed, or lapsed after its ttl; or a cost was taken, corrected, given back, charged as a penalty, or the key
 * was reset.
 */
export type LedgerEvent = 'open' | 'add' | 'close' | 'lapse' | 'take' | 'settle' | 'refund' | 'penalize' | 'reset'

/** A policy that counted, and the key that it counted. */
export interface LedgerLevel {
  /** The given name of the whole that it is a level of. */
  readonly whole?: string
  readonly policy: string
  readonly key: string
}

/** One line of a ledger. */
export interface LedgerRecord {
  /** The ledger of one process, a random name of its own. */
  readonly writer: string
  /** From 1 on, in the order of what happened there. A number that is missing was lost. */
  readonly number: number
  /** Unix time in milliseconds. */
  readonly atMs: number
  readonly event: LedgerEvent
  /** The work, of `open`, `add`, `close` and `lapse`: a number of this writer's. */
  readonly hold?: number
  /** All of them were charged alike. */
  readonly levels: readonly LedgerLevel[]
  /**
   * What this record adds to what is spent; of `settle` it may be negative, and `refund` has what was to be given back. Of `open` what is held, which
   * spends nothing.
   */
  readonly tokens: number
  /** Of `add` and `close`: how much of it was beyond the policy. */
  readonly over?: number
}

/** Where records go, such as {@link postgresLedger} or a stream. */
export interface LedgerSink {
  /**
   * Appends records, in their order. It is called with one batch at a time, and never twice with a record: what rejects counts as lost, even if
   * it was appended.
   */
  append(records: readonly LedgerRecord[]): Promise<unknown>
}
