import type { ScriptRunner } from '../script-runner.js'

/** What is used of node-redis: `createClient`, `createClientPool`, `createSentinel` or `createCluster` of `@redis/client`. */
export type NodeRedisClient = NodeRedisServer | NodeRedisSentinel | NodeRedisCluster

interface NodeRedisServer {
  sendCommand(command: string[]): Promise<unknown>
}

interface NodeRedisSentinel {
  sendCommand(isReadonly: boolean, command: string[]): Promise<unknown>
  getMasterNode(): unknown
}

interface NodeRedisCluster {
  sendCommand(firstKey: string | undefined, isReadonly: boolean, command: string[]): Promise<unknown>
  readonly masters: readonly unknown[]
  readonly slots?: readonly ({ readonly master?: { readonly address?: string } } | undefined)[]
  nodeClient(node: never): NodeRedisServer | Promise<NodeRedisServer>
}

export function isNodeRedis(client: unknown): client is NodeRedisClient {
  const { sendCommand, isOpen } = Object(client) as { readonly sendCommand?: unknown; readonly isOpen?: unknown }
  return typeof sendCommand === 'function' && typeof isOpen === 'boolean'
}

/** It rejects what was in flight when a connection is lost, and sends nothing again but after MOVED and ASK. */
export function nodeRedisRunner(client: NodeRedisClient): ScriptRunner {
  if ('masters' in client) return clusterRunner(client)
  const send =
    'getMasterNode' in client
      ? (command: readonly string[]) => client.sendCommand(false, [...command])
      : (command: readonly string[]) => client.sendCommand([...command])
  return {
    client: 'node-redis',
    isCluster: false,
    serverOf: () => undefined,
    send: (_key, command) => send(command),
    sendToAll: (command) => send(command).then((reply) => [reply]),
  }
}

function clusterRunner(cluster: NodeRedisCluster): ScriptRunner {
  return {
    client: 'node-redis',
    isCluster: true,
    serverOf: (slot) => cluster.slots?.[slot]?.master?.address,
    send: (key, command) => cluster.sendCommand(key, false, [...command]),
    sendToAll: (command) =>
      Promise.all(cluster.masters.map(async (node) => (await cluster.nodeClient(node as never)).sendCommand([...command]))),
  }
}
