import type { TestContext } from 'node:test'
import { RateLimiterRedis, type RateLimiterRedisOptions } from 'sluicegate/rate-limiter-flexible'
import { requireRival } from '../rivals.js'
import type { FlexibleLimiter } from './flexible-twins.js'

/** Options that both take. */
export type RedisOptions = Pick<RateLimiterRedisOptions, 'points' | 'duration' | 'blockDuration' | 'keyPrefix'>

interface Rival {
  readonly RateLimiterRedis: new (options: RedisOptions & { storeClient: unknown; useRedisPackage: boolean }) => FlexibleLimiter
}

/** A client of the rivals' own, connected to a server. */
export interface RivalClient {
  readonly client: object
  /** Whether rate-limiter-flexible needs the option that says it is one of node-redis. */
  readonly isNodeRedis: boolean
  close(): void
}

interface NodeRedis {
  createClient(options: object): { on(event: string, listener: () => void): unknown; connect(): Promise<object>; destroy(): void }
}

interface Ioredis {
  readonly Redis: new (options: object) => { on(event: string, listener: () => void): unknown; disconnect(): void }
}

/** The clients that both know. */
export const RIVAL_CLIENTS: Readonly<Record<string, (port: number) => Promise<RivalClient>>> = {
  'node-redis': async (port) => {
    const client = (requireRival('@redis/client') as NodeRedis).createClient({
      socket: { host: '127.0.0.1', port },
      disableOfflineQueue: true,
    })
    client.on('error', () => undefined)
    await client.connect()
    return { client, isNodeRedis: true, close: () => client.destroy() }
  },
  ioredis: async (port) => {
    const { Redis } = requireRival('ioredis') as Ioredis
    const client = new Redis({ host: '127.0.0.1', port })
    client.on('error', () => undefined)
    return { client, isNodeRedis: false, close: () => client.disconnect() }
  },
}

/** A limiter of theirs and one of ours, as two processes would have them. */
export function redisPair(
  t: TestContext,
  { client, isNodeRedis }: RivalClient,
  options: RedisOptions,
): readonly [FlexibleLimiter, RateLimiterRedis] {
  const { RateLimiterRedis: Theirs } = requireRival('rate-limiter-flexible') as Rival
  // An option that theirs needs, and ours takes.
  const own = { ...options, storeClient: client as never, timeoutMs: 30_000, useRedisPackage: isNodeRedis }
  const ours = new RateLimiterRedis(own)
  t.after(() => ours.close())
  return [new Theirs({ ...options, storeClient: client, useRedisPackage: isNodeRedis }), ours]
}
