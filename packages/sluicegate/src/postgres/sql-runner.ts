import type { CancelSignal } from '../shared/backend.js'
import type { Statement } from './statements.js'

export type SqlRow = Readonly<Record<string, unknown>>

/**
 * Runs one statement on one connection of a client. Rejects with the client's error, whose `code` is the SQLSTATE where the server refused.
 * Values are text: numbers, and bytes in hexadecimal digits. A statement that `signal` cancels before it was sent is not run.
 */
export interface SqlRunner {
  /** How many connections were opened and have answered; undefined while a statement waits for one. Absent where the client does not tell. */
  connectionsOpened?(): number | undefined
  /** @param prepared whether the server may keep the statement under its name. */
  run(statement: Statement, values: readonly string[], prepared: boolean, signal?: CancelSignal): Promise<readonly SqlRow[]>
}

/** What a call that was cancelled before it was sent rejects with. */
export function notSent(): Error {
  return new Error('given up before the statement was sent')
}
