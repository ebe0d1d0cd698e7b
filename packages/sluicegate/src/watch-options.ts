import { PolicyError } from './errors.js'
import type { SoftLimitOptions } from './soft-limit-options.js'

/** Puts a limiter behind a ledger. By `Symbol.for`, so that both forms of the package in one process know each other's ledgers. */
export const RECORDED: unique symbol = Symbol.for('sluicegate.recorded')
/** Whether a store has no policies but those that were given to it: what the library adds is kept in the process. */
export const GIVEN_ONLY: unique symbol = Symbol.for('sluicegate.given-only')

/** Where limiters write what they charge: what `createLedger` of `sluicegate/ledger` returns. */
export interface Recording {
  /** For the library. */
  readonly [RECORDED]: (limiter: object) => object
}

/** Options that look at what a limiter, in memory or over a store, decides. */
export interface WatchOptions extends SoftLimitOptions {
  /**
   * Writes what is charged, and the holds of work, to a ledger: each record at most once, in its order. It never holds up a decision.
   *
   * @defaultValue none
   * @example createLimiter(policy, { ledger: createLedger(postgresLedger(pool)) })
   */
  readonly ledger?: Recording
}

/** @throws {PolicyError} `OPTION_INVALID` */
export function checkLedger(ledger: unknown): asserts ledger is Recording {
  if (typeof (ledger as Partial<Recording> | null | undefined)?.[RECORDED] === 'function') return
  throw new PolicyError('OPTION_INVALID', 'ledger', ledger, 'must be what createLedger(sink) of sluicegate/ledger returns')
}
