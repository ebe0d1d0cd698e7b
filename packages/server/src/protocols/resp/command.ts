import type { Scope } from './access.js'
import type { CommandReader } from './command-reader.js'
import type { ReplyWriter } from './reply-writer.js'
import type { Session } from './session.js'

/** Writes a reply that was not ready when its command was read. */
export type Reply = (reply: ReplyWriter) => void

/** One command of the protocol. */
export interface Command {
  /** In small letters. */
  readonly name: string
  /** Arguments with the name; negative: at least that many. */
  readonly arity: number
  /** Whether clients that have not authenticated may send it. */
  readonly beforeAuth?: true
  /** Default `decide`. */
  readonly scope?: Scope
  /** Which argument is the key; 0 for none. */
  readonly keyAt: number
  readonly flags: readonly string[]
  readonly summary: string
  /**
   * Writes the reply, or returns a promise of it. Arguments must be read before the first `await`.
   *
   * @throws {CommandFault} which becomes an error reply.
   */
  run(session: Session, args: CommandReader, reply: ReplyWriter): Promise<Reply> | undefined
}

/** An error reply; its message begins with a code in capitals. */
export class CommandFault extends Error {
  override readonly name = 'CommandFault'
}

export const NOT_AN_INTEGER = 'ERR value is not an integer or out of range'
export const SYNTAX_ERROR = 'ERR syntax error'

export function wrongArguments(name: string): CommandFault {
  return new CommandFault(`ERR wrong number of arguments for '${name}' command`)
}
