import type { CancelSignal } from '../../shared/backend.js'
import type { CommandRunner } from '../command-runner.js'

/** The part of node-redis that is used: `createClient`, `createClientPool`, `createSentinel` or `createCluster` of `@redis/client`. */
export type NodeRedisClient = NodeRedisServer | NodeRedisSentinel | NodeRedisCluster

interface NodeRedisServer {
  sendCommand(command: string[], options?: object): Promise<unknown>
}

interface NodeRedisPool extends NodeRedisServer {
  readonly totalClients: number
  readonly idleClients: number
}

interface NodeRedisSentinel {
  sendCommand(isReadonly: boolean, command: string[], options?: object): Promise<unknown>
  getMasterNode(): unknown
}

interface NodeRedisCluster {
  sendCommand(firstKey: string | undefined, isReadonly: boolean, command: string[], options?: object): Promise<unknown>
  readonly masters: readonly object[]
  readonly slots?: readonly ({ readonly master?: { readonly address?: string } } | undefined)[]
  nodeClient(node: never): NodeRedisServer | Promise<NodeRedisServer>
}

/** Pauses before a command is repeated whose slot is moving: some of its keys may be on each server. */
const TRY_AGAIN_MS = [2, 4, 8, 16, 32, 64]

export function isNodeRedis(client: unknown): client is NodeRedisClient {
  const { sendCommand, isOpen } = Object(client) as { readonly sendCommand?: unknown; readonly isOpen?: unknown }
  return typeof sendCommand === 'function' && typeof isOpen === 'boolean'
}

/** It rejects commands in flight when a connection is lost, and repeats a command only after MOVED and ASK. */
export function nodeRedisRunner(client: NodeRedisClient): CommandRunner {
  // Version 4 can only disconnect.
  const optionsFor = typeof (client as { readonly destroy?: unknown }).destroy === 'function' ? signalOptions : signalOptions4
  if ('masters' in client) return clusterRunner(client, optionsFor)
  if ('totalClients' in client) return poolRunner(client as NodeRedisPool)
  const send =
    'getMasterNode' in client
      ? (_key: string, command: string[], signal?: CancelSignal) =>
          client.sendCommand(false, command, { ...optionsFor(signal, command), abortSignal: new OnceWritten(signal) })
      : (_key: string, command: string[], signal?: CancelSignal) => client.sendCommand(command, optionsFor(signal, command))
  return {
    client: 'node-redis',
    isCluster: false,
    serverOf: () => undefined,
    send,
    sendToAll: (command) => send('', [...command]).then((reply) => [reply]),
  }
}

/**
 * A cancelled command that was not written is dropped, wherever it waits. The client's own timeout does no more, and costs as much as the
 * rest of a command.
 */
function signalOptions(signal: CancelSignal | undefined): object | undefined {
  return signal === undefined ? undefined : { timeout: undefined, abortSignal: signal }
}

/** The same for version 4, where the option has another name. */
function signalOptions4(signal: CancelSignal | undefined, command: string[]): object | undefined {
  return signal === undefined ? undefined : { signal: new WhileUnwritten(signal, command) }
}

/**
 * Version 4 also rejects commands that were written, and drops their replies: tokens charged by a late reply could not be given back. So a
 * signal is not passed on once the command was written, which is when its last argument is read.
 */
class WhileUnwritten implements CancelSignal {
  private readonly signal: CancelSignal
  private wasWritten = false

  constructor(signal: CancelSignal, command: string[]) {
    this.signal = signal
    const last = command.length - 1
    const value = command[last]
    const get = (): string | undefined => {
      this.wasWritten = true
      return value
    }
    Object.defineProperty(command, last, { get, enumerable: true, configurable: true })
  }

  get aborted(): boolean {
    return this.signal.aborted
  }

  addEventListener(type: 'abort', listener: () => void): void {
    this.signal.addEventListener(type, () => {
      if (!this.wasWritten) listener()
    })
  }

  removeEventListener(type: 'abort', listener: () => void): void {
    this.signal.removeEventListener(type, listener)
  }
}

/** With sentinels the client repeats commands in flight when a connection was lost, unless their signal has aborted. */
class OnceWritten implements CancelSignal {
  private readonly signal: CancelSignal | undefined
  private wasWritten = false

  constructor(signal: CancelSignal | undefined) {
    this.signal = signal
  }

  get aborted(): boolean {
    return this.wasWritten || this.signal?.aborted === true
  }

  addEventListener(type: 'abort', listener: () => void): void {
    this.signal?.addEventListener(type, listener)
  }

  /** Called when the command is written: it can no longer be cancelled. */
  removeEventListener(type: 'abort', listener: () => void): void {
    this.wasWritten = true
    this.signal?.removeEventListener(type, listener)
  }
}

/** Commands that a pool gets at once before it has answered any, and has no idle connection. */
const FIRST_OF_POOL = 8
/** How many more it gets at once after each answer. */
const MORE_OF_POOL = 1 / 8

interface Held {
  readonly run: () => Promise<unknown>
  readonly signal: CancelSignal | undefined
  resolve(reply: unknown): void
  reject(error: unknown): void
}

/**
 * A pool opens a connection for every command that finds none idle: a burst would wait until dozens are open, and time out, although a few
 * have room for all of it. So commands begin slowly, and with the answers more may be under way.
 */
function poolRunner(pool: NodeRedisPool): CommandRunner {
  const held: Held[] = []
  let underWay = 0
  let most = FIRST_OF_POOL
  const start = ({ run, signal, resolve, reject }: Held): void => {
    if (signal?.aborted === true) {
      reject(new Error('given up before the command was sent'))
      return
    }
    underWay++
    run()
      .then(resolve, reject)
      .finally(() => {
        underWay--
        most += MORE_OF_POOL
        while (held.length > 0 && underWay < most) start(held.shift() as Held)
      })
  }
  const send = (command: string[], signal?: CancelSignal): Promise<unknown> =>
    new Promise((resolve, reject) => {
      // It closes idle connections after a while.
      if (underWay === 0) most = Math.max(FIRST_OF_POOL, pool.idleClients)
      const one = { run: () => pool.sendCommand(command, signalOptions(signal)), signal, resolve, reject }
      if (underWay < most) start(one)
      // The script that others wait for.
      else if (command[0] === 'EVAL') held.unshift(one)
      else held.push(one)
    })
  return {
    client: 'node-redis',
    isCluster: false,
    serverOf: () => undefined,
    send: (_key, command, signal) => send(command, signal),
    sendToAll: (command) => send([...command]).then((reply) => [reply]),
  }
}

/** @param optionsFor {@link signalOptions} or {@link signalOptions4}. */
function clusterRunner(cluster: NodeRedisCluster, optionsFor: typeof signalOptions4): CommandRunner {
  const send = (key: string, command: string[], signal: CancelSignal | undefined, tries: number): Promise<unknown> =>
    cluster.sendCommand(key, false, command, optionsFor(signal, command)).catch(async (error) => {
      const pauseMs = TRY_AGAIN_MS[tries]
      // The server refused before it executed anything.
      if (pauseMs === undefined || !(error instanceof Error && error.message.startsWith('TRYAGAIN '))) throw error
      await new Promise((resolve) => setTimeout(resolve, pauseMs))
      return send(key, command, signal, tries + 1)
    })
  return {
    client: 'node-redis',
    isCluster: true,
    serverOf: (slot) => cluster.slots?.[slot]?.master?.address,
    send: (key, command, signal) => send(key, command, signal, 0),
    sendToAll: (command) =>
      // Version 4 lists a primary once for each of its slot ranges.
      Promise.all([...new Set(cluster.masters)].map(async (node) => (await cluster.nodeClient(node as never)).sendCommand([...command]))),
  }
}
