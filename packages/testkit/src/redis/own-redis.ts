import { createClient } from '@redis/client'
import type { CommandRunner } from '../../../sluicegate/dist/redis/command-runner.js'
import type { RedisClient } from '../../../sluicegate/dist/redis/runner-for.js'
import { nodeRedisRunner } from '../../../sluicegate/dist/redis/runners/node-redis.js'
import { freePorts } from '../servers/free-ports.js'
import { RedisProcess } from '../servers/redis-process.js'

/** A server of one's own, and a client of it. */
export interface OwnRedis {
  readonly server: RedisProcess
  readonly client: RedisClient
  readonly runner: CommandRunner
  /** Any command. */
  send(...command: readonly string[]): Promise<unknown>
  stop(): Promise<void>
}

export async function ownRedis(args: readonly string[] = []): Promise<OwnRedis> {
  const [port = 0] = await freePorts(1)
  const server = await RedisProcess.start({ port, args })
  const client = createClient({ url: server.url })
  client.on('error', () => undefined)
  await client.connect()
  return {
    server,
    client,
    runner: nodeRedisRunner(client),
    send: (...command) => client.sendCommand([...command]),
    stop: async () => {
      client.destroy()
      await server.stop()
    },
  }
}
