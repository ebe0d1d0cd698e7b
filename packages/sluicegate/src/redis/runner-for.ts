import { PolicyError } from '../errors.js'
import { type GlideClient, glideRunner, isGlide } from './runners/glide.js'
import { type IoredisClient, ioredisRunner, isIoredis } from './runners/ioredis.js'
import { isNodeRedis, type NodeRedisClient, nodeRedisRunner } from './runners/node-redis.js'
import type { ScriptRunner } from './script-runner.js'

/** A client that the caller made, and connects and closes: of node-redis, ioredis or valkey-glide; one server, Sentinel or Cluster. */
export type RedisClient = NodeRedisClient | IoredisClient | GlideClient

/**
 * The runner for a client.
 *
 * @throws {PolicyError} `CLIENT_INVALID`
 */
export function runnerFor(client: unknown): ScriptRunner {
  if (isGlide(client)) return glideRunner(client)
  if (isIoredis(client)) return ioredisRunner(client)
  if (isNodeRedis(client)) return nodeRedisRunner(client)
  throw new PolicyError(
    'CLIENT_INVALID',
    'client',
    client,
    'must be a client of @redis/client or redis (4.6 or later), ioredis (5 or later) or @valkey/valkey-glide, made and connected by you',
  )
}
