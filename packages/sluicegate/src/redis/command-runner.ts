import type { CancelSignal } from '../shared/backend.js'

/**
 * The one thing that is asked of a client: it brings a command to the server that holds `key`, follows redirects (MOVED, ASK), and
 * answers with the reply, integers as numbers.
 *
 * Atomicity and time are the server's. A command that may have been carried out is never sent again: when its reply is lost the promise
 * rejects, and what it did stays done. Rejects with what the server or the connection said.
 */
export interface CommandRunner {
  /** Which client it is, for messages. */
  readonly client: string
  /** Whether keys of one call have to be in one hash slot. */
  readonly isCluster: boolean
  /** The server of a key's hash slot, as far as the client tells. */
  serverOf(slot: number): string | undefined
  /**
   * @param command belongs to the client from then on.
   * @param signal says when nobody waits any more: what was not written by then is not sent, and rejects. Without it the client's own time
   * is as long as a command waits for a connection.
   */
  send(key: string, command: string[], signal?: CancelSignal): Promise<unknown>
  /** `command` to each server that takes writes, for what is checked at the start. */
  sendToAll(command: readonly string[]): Promise<readonly unknown[]>
}
