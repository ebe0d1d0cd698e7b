import type { Engine } from '../../engine/engine.js'
import type { Access, Scope, User } from './access.js'
import type { CommandReader } from './command-reader.js'
import type { ReplyWriter } from './reply-writer.js'

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
  run(client: Client, args: CommandReader, reply: ReplyWriter): Promise<Reply> | undefined
}

/** All commands. */
export interface CommandList {
  readonly all: readonly Command[]
  /** The command whose name is in these bytes, in any case; `http` for the first words of an HTTP request. */
  find(bytes: Buffer, start: number, end: number): Command | 'http' | undefined
}

/** What all sessions of a server share. */
export interface SessionContext {
  readonly engine: Engine
  readonly commands: CommandList
  readonly access: Access
  /** For `INFO`. */
  readonly facts: () => ServerFacts
  /** Counts and logs an error of the service, which the client receives as `ERR internal error`. */
  readonly onFault: (error: unknown) => void
}

/** What `INFO` reports about the server. */
export interface ServerFacts {
  readonly version: string
  readonly connections: number
  readonly uptimeS: number
}

/** What commands see and change of a client's session. */
export interface Client {
  readonly id: number
  readonly context: SessionContext
  /** Undefined: it has to authenticate. */
  user: User | undefined
  protocol: 2 | 3
  /** Set by `CLIENT SETNAME` and `CLIENT SETINFO`. */
  clientName: string
  libraryName: string
  libraryVersion: string
  /** No further command is read. */
  end(): void
  /** The client has sent a wrong token; after some of them its connection is closed. */
  countWrongToken(): void
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
