import type { CancelSignal } from '../../shared/backend.js'
import type { CommandRunner } from '../command-runner.js'

/** The part of ioredis that is used: `new Redis()`, also with `sentinels`, or `new Cluster()`. */
export interface IoredisClient {
  readonly status: string
  readonly isCluster?: boolean
  readonly options: object
  call(name: string, ...args: string[]): Promise<unknown>
  sendCommand(command: never): unknown
  readonly slots?: readonly (readonly string[] | undefined)[]
  nodes?(role: 'master'): readonly IoredisClient[]
}

/** The part of ioredis' command that is used. */
interface Command {
  readonly promise: Promise<unknown>
  resolve: (reply: unknown) => void
  reject: (error: Error) => void
  /** @param socket from version 5 on. */
  toWritable(socket?: Socket): string | Uint8Array
}

/** A command that is sent at most once: whether it may be sent as itself, whether a PING was sent instead, and its callbacks. */
interface GuardedCommand extends Command {
  signal: CancelSignal | undefined
  maySend: boolean
  isLost: boolean
  resolution: Command['resolve']
  rejection: Command['reject']
}

/** The socket to which a command is written. */
interface Socket {
  readonly writableCorked: number
  cork(): void
  uncork(): void
}

type CommandClass = new (name: string, args: readonly string[], options: object) => Command

/** The server refused before it executed anything: the command may be sent again. */
const REFUSAL = /^(?:MOVED|ASK|TRYAGAIN|CLUSTERDOWN|READONLY|LOADING|MASTERDOWN) /
const PING = '*1\r\n$4\r\nPING\r\n'

export function isIoredis(client: unknown): client is IoredisClient {
  const { sendCommand, call, status } = Object(client) as { readonly [method in keyof IoredisClient]?: unknown }
  // The last one exists since 4.19.
  const isKnown = 'autoPipelineQueueSize' in Object(client)
  return typeof sendCommand === 'function' && typeof call === 'function' && typeof status === 'string' && isKnown
}

/**
 * After a lost connection ioredis repeats commands in flight, although the server may have executed them. Whatever the client's options,
 * nothing is charged twice: a command that is written a second time goes out as a PING and rejects. So does a command that was cancelled
 * while it waited for a connection.
 */
export function ioredisRunner(client: IoredisClient): CommandRunner {
  const Command = sentOnce(commandClassOf(client))
  const { keyPrefix } = client.options as { readonly keyPrefix?: string }
  const options = { replyEncoding: 'utf8', keyPrefix }
  const sendTo = (target: IoredisClient, words: readonly string[], signal?: CancelSignal): Promise<unknown> => {
    // Version 4 finds the keys of a command only by its name in lower case.
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
    // Its table of slots is internal and may change its shape.
    serverOf: (slot) => client.slots?.[slot]?.[0],
    send: (_key, command, signal) => sendTo(client, command, signal),
    sendToAll: async (command) => {
      // A cluster knows its nodes after its first command.
      if (nodes().length === 0) await sendTo(client, ['PING'])
      return Promise.all(nodes().map((node) => sendTo(node, command)))
    },
  }
}

/** A class of commands that are written once, and then as a PING. */
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
  // The client sets both when it creates a command; a cluster replaces the second, to send the command elsewhere. They are defined on the
  // prototype, because defining them for each command costs as much as creating one.
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

/** Commands of one turn are written together. */
function gather(socket: Socket): void {
  if (socket.writableCorked !== 0) return
  socket.cork()
  queueMicrotask(() => socket.uncork())
}

/** The command class of the client's own version, taken from a command that is created and not sent. */
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
