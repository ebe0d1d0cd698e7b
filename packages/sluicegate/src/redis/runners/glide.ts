import type { CommandRunner } from '../command-runner.js'

/** The part of valkey-glide that is used: `GlideClient` or `GlideClusterClient`. */
export interface GlideClient {
  customCommand(command: string[], options?: object): Promise<unknown>
  invokeScript(script: never, options?: object): Promise<unknown>
}

export function isGlide(client: unknown): client is GlideClient {
  const { customCommand, invokeScript } = Object(client) as { readonly [method in keyof GlideClient]?: unknown }
  return typeof customCommand === 'function' && typeof invokeScript === 'function'
}

/** It sends a script to the server of its first key. */
export function glideRunner(client: GlideClient): CommandRunner {
  // Only the cluster's client knows routes.
  const isCluster = 'invokeScriptWithRoute' in client
  return {
    client: 'valkey-glide',
    isCluster,
    serverOf: () => undefined,
    send: (_key, command) => client.customCommand(command),
    sendToAll: async (command) => {
      if (!isCluster) return [await client.customCommand([...command])]
      const replies = (await client.customCommand([...command], { route: 'allPrimaries' })) as readonly { readonly value: unknown }[]
      return Array.isArray(replies) ? replies.map(({ value }) => value) : Object.values(replies)
    },
  }
}
