import type { ScriptRunner } from '../script-runner.js'

/** What is used of node-redis: `createClient`, `createClientPool`, `createSentinel` or `createCluster` of `@redis/client`. */
export type NodeRedisClient = NodeRedisServer | NodeRedisSentinel | NodeRedisCluster

/** Of version 6; whether what is sent now goes out now. */
interface Readiness {
  readonly isReady?: boolean
}

interface NodeRedisServer extends Readiness {
  sendCommand(command: string[], options?: object): Promise<unknown>
}

interface NodeRedisSentinel extends Readiness {
  sendCommand(isReadonly: boolean, command: string[], options?: object): Promise<unknown>
  getMasterNode(): unknown
}

interface NodeRedisCluster {
  sendCommand(firstKey: string | undefined, isReadonly: boolean, command: string[], options?: object): Promise<unknown>
  readonly masters: readonly { readonly client?: Readiness }[]
  readonly slots?: readonly ({ readonly master?: { readonly address?: string } } | undefined)[]
  nodeClient(node: never): NodeRedisServer | Promise<NodeRedisServer>
}

/**
 * Its own time-out is a signal and a timer for each command, and costs as much as all the rest of it; who sends here has a time-out of his
 * own. What has to wait for a connection keeps it, so that nothing goes out long after.
 */
const UNTIMED = { timeout: undefined }

/** When a slot that moves to another server is asked for again: of its keys some may be here and some there. */
const TRY_AGAIN_MS = [2, 4, 8, 16, 32, 64]

export function isNodeRedis(client: unknown): client is NodeRedisClient {
  const { sendCommand, isOpen } = Object(client) as { readonly sendCommand?: unknown; readonly isOpen?: unknown }
  return typeof sendCommand === 'function' && typeof isOpen === 'boolean'
}

/** It rejects what was in flight when a connection is lost, and sends nothing again but after MOVED and ASK. */
export function nodeRedisRunner(client: NodeRedisClient): ScriptRunner {
  if ('masters' in client) return clusterRunner(client)
  const send =
    'getMasterNode' in client
      ? (command: readonly string[]) => client.sendCommand(false, [...command], optionsFor(client))
      : (command: readonly string[]) => client.sendCommand([...command], optionsFor(client))
  return {
    client: 'node-redis',
    isCluster: false,
    serverOf: () => undefined,
    send: (_key, command) => send(command),
    sendToAll: (command) => send(command).then((reply) => [reply]),
  }
}

function optionsFor({ isReady }: Readiness): object | undefined {
  return isReady === true ? UNTIMED : undefined
}

/** A cluster calls itself ready also while some of its servers cannot be reached, and keeps commands for them. */
function optionsOn({ masters }: NodeRedisCluster): object | undefined {
  return masters.every(({ client }) => client?.isReady === true) ? UNTIMED : undefined
}

function clusterRunner(cluster: NodeRedisCluster): ScriptRunner {
  return {
    client: 'node-redis',
    isCluster: true,
    serverOf: (slot) => cluster.slots?.[slot]?.master?.address,
    send: async (key, command) => {
      for (const pauseMs of TRY_AGAIN_MS) {
        try {
          return await cluster.sendCommand(key, false, [...command], optionsOn(cluster))
        } catch (error) {
          // The server refused before it did anything.
          if (!(error instanceof Error && error.message.startsWith('TRYAGAIN '))) throw error
        }
        await new Promise((resolve) => setTimeout(resolve, pauseMs))
      }
      return cluster.sendCommand(key, false, [...command], optionsOn(cluster))
    },
    sendToAll: (command) =>
      Promise.all(cluster.masters.map(async (node) => (await cluster.nodeClient(node as never)).sendCommand([...command]))),
  }
}
