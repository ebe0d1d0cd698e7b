import type { CancelSignal } from '../shared/backend.js'

/**
 * A Redis client as the library uses it: it sends a command to the server that holds `key`, follows redirects (MOVED, ASK), and resolves
 * with the reply, integers as numbers.
 *
 * Atomicity and time are the server's. A command that may have been executed is never sent again: when its reply is lost the promise
 * rejects, and its effect stays. Rejects with the error of the server or the connection.
 */
export interface CommandRunner {
  /** The client's name, for messages. */
  readonly client: string
  /** Whether the keys of one call must be in one hash slot. */
  readonly isCluster: boolean
  /** The server of a hash slot, if the client knows it. */
  serverOf(slot: number): string | undefined
  /**
   * @param command belongs to the client from then on.
   * @param signal cancels the command: if it was not written yet, it is not sent and rejects. Without a signal a command waits for a
   * connection as long as the client's own settings say.
   */
  send(key: string, command: string[], signal?: CancelSignal): Promise<unknown>
  /** Sends `command` to each primary, for the checks at the start. */
  sendToAll(command: readonly string[]): Promise<readonly unknown[]>
}
