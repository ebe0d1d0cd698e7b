import { PolicyError } from '../errors.js'
import { onceInProcess } from '../once-in-process.js'
import type { CommandRunner } from './command-runner.js'
import { type GlideClient, glideRunner, isGlide } from './runners/glide.js'
import { type IoredisClient, ioredisRunner, isIoredis } from './runners/ioredis.js'
import { isNodeRedis, type NodeRedisClient, nodeRedisRunner } from './runners/node-redis.js'

/** A client of node-redis, ioredis or valkey-glide that the caller created, connects and closes: one server, Sentinel or Cluster. */
export type RedisClient = NodeRedisClient | IoredisClient | GlideClient

/** One runner for each client, shared by all its limiters. */
const runners = /* @__PURE__ */ onceInProcess('script runners', () => new WeakMap<object, CommandRunner>())

/**
 * The runner for a client.
 *
 * @throws {PolicyError} `CLIENT_INVALID`
 */
export function runnerFor(client: unknown): CommandRunner {
  const known = typeof client === 'object' && client !== null ? runners.get(client) : undefined
  if (known !== undefined) return known
  const runner = newRunner(client)
  runners.set(client as object, runner)
  return runner
}

function newRunner(client: unknown): CommandRunner {
  if (isGlide(client)) return glideRunner(client)
  if (isIoredis(client)) return ioredisRunner(client)
  if (isNodeRedis(client)) return nodeRedisRunner(client)
  if (isTooOld(client)) {
    throw new PolicyError(
      'CLIENT_INVALID',
      'client',
      client,
      'must be newer: this is node-redis 3 or older, or ioredis 4.18 or older; npm install redis@5, or ioredis@5',
    )
  }
  if (typeof (client as { readonly then?: unknown } | null | undefined)?.then === 'function') {
    throw new PolicyError(
      'CLIENT_INVALID',
      'client',
      client,
      'must be a client, and this is a promise of a client: await it, as in redis(await createClient().connect())',
    )
  }
  throw new PolicyError(
    'CLIENT_INVALID',
    'client',
    client,
    'must be a client of redis (4.7 or later) or @redis/client, ioredis (4.31 or later) or @valkey/valkey-glide (2 or later), made and connected by you',
  )
}

/** Clients of older versions: with callbacks, or without the class of commands that is needed. */
function isTooOld(client: unknown): boolean {
  const { send_command: send, internal_send_command: inner, sendCommand, call } = Object(client) as { readonly [name: string]: unknown }
  return typeof send === 'function' && (typeof inner === 'function' || (typeof sendCommand === 'function' && typeof call === 'function'))
}
