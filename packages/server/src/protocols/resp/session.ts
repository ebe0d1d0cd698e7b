import { PolicyError, StoreError, TooManyHeldError } from '../../engine/engine.js'
import { type User, userWithoutToken } from './access.js'
import { type Client, type Command, CommandFault, type Reply, type SessionContext, wrongArguments } from './command.js'
import { CommandReader, MAX_ARGUMENT_BYTES, MAX_ARGUMENTS, MAX_ARGUMENTS_UNAUTHENTICATED } from './command-reader.js'
import { ReplyWriter } from './reply-writer.js'
import { ProtocolFault } from './resp-bytes.js'

/** Commands of one connection that are answered before other connections have their turn. */
const COMMANDS_PER_TURN = 128
/** How long they may take together, looked at after each of these numbers. */
const TURN_MS = 0.5
const COMMANDS_OF_LOOK = 8
/** Replies that are ready and not written yet; further commands wait. */
const MAX_REPLY_BYTES = 65_536
/** Commands of one connection that wait for a store. */
const MAX_IN_FLIGHT = 128
/** Wrong tokens after which the connection is closed. */
const MAX_WRONG_TOKENS = 8
const FIRST_LATER_BYTES = 128

/**
 * What a session waits for. `input`: more bytes. `turn`: the other connections. `room`: its replies have to be taken. `store`: commands in
 * flight. `end`: nothing, the connection is closed after the last reply.
 */
export type Waiting = 'input' | 'turn' | 'room' | 'store' | 'end'

/** A reply in the order of its command that is ready or not. */
interface Later {
  readonly writer: ReplyWriter
  isReady: boolean
}

/** One client's side of the protocol, without a socket: bytes in, replies out. */
export class Session implements Client {
  readonly id: number
  readonly context: SessionContext
  readonly #reader = new CommandReader()
  readonly #replies = new ReplyWriter()
  /** Commands in flight, and those answered behind them. */
  readonly #later: Later[] = []
  readonly #onReady: () => void
  #user: User | undefined
  /** Of the tokens by which it is the user. */
  #generation = 0
  #isEnding = false
  #isInputEnded = false
  #wrongTokens = 0
  /** Set by `CLIENT SETNAME` and `CLIENT SETINFO`. */
  clientName = ''
  libraryName = ''
  libraryVersion = ''

  /** @param onReady called when replies become ready outside of {@link run}. */
  constructor(id: number, context: SessionContext, onReady: () => void) {
    this.id = id
    this.context = context
    this.#onReady = onReady
    this.user = userWithoutToken(context.access)
  }

  get user(): User | undefined {
    return this.#user
  }

  set user(user: User | undefined) {
    this.#generation = this.context.access.generation
    this.#user = user
    this.#reader.maxArguments = user === undefined ? MAX_ARGUMENTS_UNAUTHENTICATED : MAX_ARGUMENTS
  }

  get protocol(): 2 | 3 {
    return this.#replies.protocol
  }

  set protocol(protocol: 2 | 3) {
    this.#replies.protocol = protocol
  }

  /** Bytes of memory that input takes which is not answered yet. */
  get heldBytes(): number {
    return this.#reader.heldBytes
  }

  /** Whether a part of a command has arrived, or commands wait. */
  get hasInput(): boolean {
    return this.#reader.hasInput
  }

  get inFlight(): number {
    return this.#later.length
  }

  push(chunk: Buffer): void {
    this.#reader.push(chunk)
  }

  /** The replies that are ready, in the order of their commands. */
  takeReplies(): Buffer {
    return this.#replies.take()
  }

  get readyBytes(): number {
    return this.#replies.length
  }

  /** The client sends no more. */
  endInput(): void {
    this.#isInputEnded = true
  }

  /** No further command is read. */
  end(): void {
    this.#isEnding = true
  }

  /** The client has sent a wrong token; after some of them its connection is closed. */
  countWrongToken(): void {
    if (++this.#wrongTokens >= MAX_WRONG_TOKENS) this.end()
  }

  /** Answers the commands that have arrived, as far as the bounds allow. */
  run(): Waiting {
    if (this.#generation !== this.context.access.generation)
      this.user = this.#user === undefined ? userWithoutToken(this.context.access) : this.#user.again()
    const untilMs = performance.now() + TURN_MS
    for (let left = COMMANDS_PER_TURN; ; left--) {
      if (this.#isEnding) return this.#later.length > 0 ? 'store' : 'end'
      if (this.#replies.length >= MAX_REPLY_BYTES) return 'room'
      if (this.#later.length >= MAX_IN_FLIGHT) return 'store'
      if (left === 0 || (left < COMMANDS_PER_TURN && left % COMMANDS_OF_LOOK === 0 && performance.now() >= untilMs)) return 'turn'
      if (!this.#next()) {
        this.#reader.keep()
        if (this.#isInputEnded && this.#later.length === 0) return 'end'
        return this.#isEnding ? (this.#later.length > 0 ? 'store' : 'end') : 'input'
      }
    }
  }

  #next(): boolean {
    try {
      if (!this.#reader.next()) return false
      if (this.#reader.count > 0) this.#execute()
      return true
    } catch (error) {
      if (!(error instanceof ProtocolFault)) throw error
      this.#writer().error(`ERR Protocol error: ${error.message}`)
      this.end()
      return false
    }
  }

  #execute(): void {
    const reader = this.#reader
    const command = this.context.commands.find(reader.bytes, reader.starts[0] as number, reader.ends[0] as number)
    // A page of another site can make a browser send lines of its choice; the first line of such a request gives it away.
    if (command === 'http') {
      this.end()
      return
    }
    const reply = this.#writer()
    try {
      const later = this.#checked(command).run(this, reader, reply)
      if (later !== undefined) this.#await(later)
    } catch (error) {
      reply.error(this.#errorText(error))
    }
    this.#flushLater()
  }

  /** @throws {CommandFault} when the client may not send the command, or not so. */
  #checked(command: Command | undefined): Command {
    const { count } = this.#reader
    if (this.#reader.hasLongArgument) throw new CommandFault(`ERR an argument must have at most ${MAX_ARGUMENT_BYTES} bytes`)
    if (command === undefined) throw this.#unknown()
    const { name, arity } = command
    if (arity > 0 ? count !== arity : count < -arity) throw wrongArguments(name)
    if (command.beforeAuth) return command
    if (this.#user === undefined) throw new CommandFault('NOAUTH Authentication required.')
    if (command.scope === 'admin' && this.#user.scope !== 'admin') {
      throw new CommandFault(`NOPERM User ${this.#user.name} has no permissions to run the '${name}' command`)
    }
    return command
  }

  #unknown(): CommandFault {
    if (this.#user === undefined) return new CommandFault('NOAUTH Authentication required.')
    const reader = this.#reader
    const name = shown(reader.text(0))
    const args = Array.from({ length: Math.min(reader.count - 1, 4) }, (_, i) => `'${shown(reader.text(i + 1))}' `)
    return new CommandFault(`ERR unknown command '${name}', with args beginning with: ${args.join('')}`)
  }

  /** Where the reply of the next command is written: behind those in flight. */
  #writer(): ReplyWriter {
    if (this.#later.length === 0) return this.#replies
    const later = { writer: new ReplyWriter(FIRST_LATER_BYTES), isReady: true }
    later.writer.protocol = this.protocol
    this.#later.push(later)
    return later.writer
  }

  #await(promise: Promise<Reply>): void {
    const isBehind = this.#later.length > 0
    const later = (isBehind ? this.#later.at(-1) : undefined) ?? { writer: new ReplyWriter(FIRST_LATER_BYTES), isReady: false }
    later.isReady = false
    later.writer.protocol = this.protocol
    if (!isBehind) this.#later.push(later)
    const settle = (write: (writer: ReplyWriter) => void): void => {
      write(later.writer)
      later.isReady = true
      this.#flushLater()
      this.#onReady()
    }
    promise
      .then(settle, (error: unknown) => settle((writer) => writer.error(this.#errorText(error))))
      .catch((error: unknown) => {
        this.context.onFault(error)
        this.#later.length = 0
        this.end()
        this.#onReady()
      })
  }

  /** The first line of an error reply. */
  #errorText(error: unknown): string {
    if (error instanceof CommandFault) return error.message
    if (error instanceof PolicyError) return `ERR ${error.message}`
    if (error instanceof TooManyHeldError) return `BUSY ${error.message}`
    if (error instanceof StoreError) return `${error.code === 'OUTAGE' ? 'OUTAGE' : 'TRYAGAIN'} ${error.message}`
    this.context.onFault(error)
    // A part of the reply may be written already, and the client would take the next reply for the rest of it.
    this.end()
    return 'ERR internal error'
  }

  /** Moves replies to the end of the ready ones, up to the first that is not ready. */
  #flushLater(): void {
    while (this.#later[0]?.isReady) this.#replies.append((this.#later.shift() as Later).writer.take())
  }
}

const MAX_SHOWN = 64

/** For an error message: short, and without control characters. */
function shown(text: string): string {
  return text.slice(0, MAX_SHOWN).replace(/\p{C}/gu, '?')
}
