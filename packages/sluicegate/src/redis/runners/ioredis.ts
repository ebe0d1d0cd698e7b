import type { CancelSignal } from '../../shared/backend.js'
import type { CommandRunner } from '../command-runner.js'

/** What is used of ioredis: `new Redis()`, also with `sentinels`, or `new Cluster()`. */
export interface IoredisClient {
  readonly status: string
  readonly isCluster?: boolean
  readonly options: object
  call(name: string, ...args: string[]): Promise<unknown>
  sendCommand(command: never): unknown
  readonly slots?: readonly (readonly string[] | undefined)[]
  nodes?(role: 'master'): readonly IoredisClient[]
}

/** A command of ioredis, as far as it is used. */
interface Command {
  readonly promise: Promise<unknown>
  resolve: (reply: unknown) => void
  reject: (error: Error) => void
  /** @param socket from version 5 on. */
  toWritable(socket?: Socket): string | Uint8Array
}

/** One that is guarded: whether it may go out as itself, whether it went out as a PING instead, and what its end leads to. */
interface GuardedCommand extends Command {
  signal: CancelSignal | undefined
  maySend: boolean
  isLost: boolean
  resolution: Command['resolve']
  rejection: Command['reject']
}

/** The socket that a command is about to be written to. */
interface Socket {
  readonly writableCorked: number
  cork(): void
  uncork(): void
}

type CommandClass = new (name: string, args: readonly string[], options: object) => Command

/** Refused before anything was done: such a command may be sent again, elsewhere or later. */
const REFUSAL = /^(?:MOVED|ASK|TRYAGAIN|CLUSTERDOWN|READONLY|LOADING|MASTERDOWN) /
const PING = '*1\r\n$4\r\nPING\r\n'

export function isIoredis(client: unknown): client is IoredisClient {
  const { sendCommand, call, status } = Object(client) as { readonly [method in keyof IoredisClient]?: unknown }
  // The last since 4.19.
  const isKnown = 'autoPipelineQueueSize' in Object(client)
  return typeof sendCommand === 'function' && typeof call === 'function' && typeof status === 'string' && isKnown
}

/**
 * After a lost connection ioredis sends again what was in flight, though the server may have carried it out. However the client was told
 * to behave, nothing of this is charged twice: a command that comes up for the wire once more goes out as a PING, and rejects. So does one
 * that was cancelled while it waited for a connection.
 */
export function ioredisRunner(client: IoredisClient): CommandRunner {
  const Command = sentOnce(commandClassOf(client))
  const { keyPrefix } = client.options as { readonly keyPrefix?: string }
  const options = { replyEncoding: 'utf8', keyPrefix }
  const sendTo = (target: IoredisClient, words: readonly string[], signal?: CancelSignal): Promise<unknown> => {
    // By names in small letters alone version 4 finds the keys of a command.
    const command = new Command((words[0] as string).toLowerCase(), words.slice(1), options)
    command.signal = signal
    const sent = target.sendCommand(command as never)
    // The promise that counts is the command's own.
    if (sent !== command.promise) Promise.resolve(sent).catch(() => undefined)
    return command.promise
  }
  const nodes = (): readonly IoredisClient[] => client.nodes?.('master') ?? [client]
  return {
    client: 'ioredis',
    isCluster: client.isCluster === true,
    // What it knows of slots is its own affair, and may change its shape.
    serverOf: (slot) => client.slots?.[slot]?.[0],
    send: (_key, command, signal) => sendTo(client, command, signal),
    sendToAll: async (command) => {
      // A cluster knows its nodes from its first command on.
      if (nodes().length === 0) await sendTo(client, ['PING'])
      return Promise.all(nodes().map((node) => sendTo(node, command)))
    },
  }
}

/** Commands of a class of the client that go out once, and then as a PING. */
function sentOnce(Base: CommandClass): new (...args: ConstructorParameters<CommandClass>) => GuardedCommand {
  class SentOnce extends Base {
    signal: CancelSignal | undefined = undefined
    maySend = true
    isLost = false

    override toWritable(socket?: Socket): string | Uint8Array {
      this.isLost = !this.maySend || this.signal?.aborted === true
      this.maySend = false
      if (socket !== undefined) gather(socket)
      return this.isLost ? PING : super.toWritable(socket)
    }
  }
  // The client sets both as it makes a command; a cluster puts a function of its own for the second, which sends the command elsewhere. On
  // the prototype: to define them for each command costs as much as to make one.
  Object.defineProperty(SentOnce.prototype, 'resolve', {
    get(this: GuardedCommand) {
      return this.isLost ? () => this.reject(new Error('the connection was lost before the reply came')) : this.resolution
    },
    set(this: GuardedCommand, next: Command['resolve']) {
      this.resolution = next
    },
  })
  Object.defineProperty(SentOnce.prototype, 'reject', {
    get(this: GuardedCommand) {
      const current = this.rejection
      return (error: Error) => {
        if (REFUSAL.test(error.message)) this.maySend = true
        current.call(this, error)
      }
    },
    set(this: GuardedCommand, next: Command['reject']) {
      this.rejection = next
    },
  })
  return SentOnce as unknown as new (
    ...args: ConstructorParameters<CommandClass>
  ) => GuardedCommand
}

/** What is written in one turn goes out in one piece. */
function gather(socket: Socket): void {
  if (socket.writableCorked !== 0) return
  socket.cork()
  queueMicrotask(() => socket.uncork())
}

/** The class of the client's own version, without importing it: taken from a command that is made and not sent. */
function commandClassOf(client: IoredisClient): CommandClass {
  let made: object | undefined
  const catcher = Object.create(client, {
    options: { value: { ...client.options, enableAutoPipelining: false } },
    sendCommand: {
      value: (command: object) => {
        made = command
      },
    },
  }) as IoredisClient
  catcher.call('PING')
  return (made as object).constructor as CommandClass
}
