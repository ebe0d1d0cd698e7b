import type { ScriptRunner } from '../script-runner.js'

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
  reject: (error: Error) => void
  toWritable: (socket: object) => string | Uint8Array
}

type CommandClass = new (name: string, args: readonly string[], options: object) => Command

/** Refused before anything was done: such a command may be sent again, elsewhere or later. */
const REFUSAL = /^(?:MOVED|ASK|TRYAGAIN|CLUSTERDOWN|READONLY|LOADING|MASTERDOWN) /
const PING = '*1\r\n$4\r\nPING\r\n'

export function isIoredis(client: unknown): client is IoredisClient {
  const { sendCommand, call, status } = Object(client) as { readonly [method in keyof IoredisClient]?: unknown }
  return typeof sendCommand === 'function' && typeof call === 'function' && typeof status === 'string'
}

/**
 * After a lost connection ioredis sends again what was in flight, though the server may have carried it out. However the client was told
 * to behave, nothing of this is charged twice: a command that comes up for the wire once more goes out as a PING, and rejects.
 */
export function ioredisRunner(client: IoredisClient): ScriptRunner {
  const Command = commandClassOf(client)
  const { keyPrefix } = client.options as { readonly keyPrefix?: string }
  const send = ([name = '', ...args]: readonly string[]): Promise<unknown> => {
    const command = new Command(name, args, { replyEncoding: 'utf8', keyPrefix })
    const lost = sentOnce(command)
    client.sendCommand(command as never)
    return command.promise.then((reply) => {
      if (lost()) throw new Error('the connection was lost before the reply came')
      return reply
    })
  }
  const nodes = (): readonly IoredisClient[] => client.nodes?.('master') ?? [client]
  return {
    client: 'ioredis',
    isCluster: client.isCluster === true,
    // What it knows of slots is its own affair, and may change its shape.
    serverOf: (slot) => client.slots?.[slot]?.[0],
    send: (_key, command) => send(command),
    sendToAll: ([name = '', ...args]) => Promise.all(nodes().map((node) => node.call(name, ...args))),
  }
}

/** Guards a command; answers whether it went out as a PING. */
function sentOnce(command: Command): () => boolean {
  let maySend = true
  let isLost = false
  const write = command.toWritable.bind(command)
  command.toWritable = (socket) => {
    isLost = !maySend
    maySend = false
    return isLost ? PING : write(socket)
  }
  // A cluster puts a function of its own here, which sends the command elsewhere.
  let { reject } = command
  Object.defineProperty(command, 'reject', {
    get() {
      const current = reject
      return (error: Error) => {
        if (REFUSAL.test(error.message)) maySend = true
        current.call(command, error)
      }
    },
    set(next: typeof reject) {
      reject = next
    },
  })
  return () => isLost
}

/** The class of the client's own version, without importing it: taken from a command that is made and not sent. */
function commandClassOf(client: IoredisClient): CommandClass {
  let made: object | undefined
  const catcher = Object.create(client, {
    options: { value: { ...client.options, enableAutoPipelining: false } },
    sendCommand: { value: (command: object) => void (made = command) },
  }) as IoredisClient
  catcher.call('PING')
  return (made as object).constructor as CommandClass
}
