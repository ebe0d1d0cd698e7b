import type { CancelSignal } from '../shared/backend.js'
import type { Statement } from './statements.js'

/** What a statement takes: bytes, and numbers as text. */
export type SqlValue = string | Uint8Array

export type SqlRow = Readonly<Record<string, unknown>>

/**
 * Runs one statement on one connection of a client. Rejects with the client's error, whose `code` is the SQLSTATE where the server refused.
 * A statement that `signal` cancels before it was sent is not run.
 */
export interface SqlRunner {
  /** @param prepared whether the server may keep the statement under its name. */
  run(statement: Statement, values: readonly SqlValue[], prepared: boolean, signal?: CancelSignal): Promise<readonly SqlRow[]>
}

/** What a call that was cancelled before it was sent rejects with. */
export function notSent(): Error {
  return new Error('given up before the statement was sent')
}
