import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { RateLimiterRedis, RateLimiterRes } from 'sluicegate/rate-limiter-flexible'
import { requireRival } from '../rivals.js'
import type { RedisOptions, RivalClient } from './flexible-redis.js'
import { type FlexibleLimiter, type Outcome, outcome, type Twins } from './flexible-twins.js'

const theirs = requireRival('rate-limiter-flexible') as {
  readonly RateLimiterRedis: new (options: object) => FlexibleLimiter
  readonly RateLimiterRes: new () => RateLimiterRes
}

/** rate-limiter-flexible over Redis and what stands in for it here, each behind its own server that is asked over HTTP. */
export class SocketTwins implements Twins {
  /** What passes between the two, of the lengths of time that both tell. */
  readonly mostMsApart = 30_000
  private readonly own: RateLimiterRedis
  private readonly sites: readonly Site[]

  private constructor(own: RateLimiterRedis, sites: readonly Site[]) {
    this.own = own
    this.sites = sites
  }

  static async open(options: RedisOptions, { client, isNodeRedis }: RivalClient): Promise<SocketTwins> {
    const own = new RateLimiterRedis({ ...options, storeClient: client as never, timeoutMs: 30_000 })
    const their = new theirs.RateLimiterRedis({ ...options, storeClient: client, useRedisPackage: isNodeRedis })
    return new SocketTwins(own, [await Site.open(their), await Site.open(own)])
  }

  get nowMs(): number {
    return Date.now()
  }

  /** Never at the beginning of one: theirs begins with a request. */
  get intoWindowMs(): number {
    return 1
  }

  advance(): void {}
  leave(): void {}

  async both(call: (limiter: FlexibleLimiter) => Promise<RateLimiterRes | boolean | null>): Promise<readonly [Outcome, Outcome]> {
    const [a, b] = this.sites as readonly [Site, Site]
    return [await outcome(call(a.limiter), RateLimiterRes), await outcome(call(b.limiter), RateLimiterRes)]
  }

  async stop(): Promise<void> {
    this.own.close()
    for (const site of this.sites) await site.close()
  }
}

/** A server that asks a limiter what it is asked, and `limiter`, which asks that server. */
class Site {
  readonly limiter: FlexibleLimiter
  private readonly server: Server

  private constructor(server: Server) {
    const { port } = server.address() as AddressInfo
    const ask = async (...call: readonly (string | number | undefined)[]): Promise<never> => {
      const response = await fetch(`http://127.0.0.1:${port}/`, { method: 'POST', body: JSON.stringify(call) })
      const answer: unknown = await response.json()
      if (response.status === 200) return resIn(answer) as never
      throw response.status === 429 ? resIn(answer) : new Error(String(answer))
    }
    this.server = server
    this.limiter = {
      consume: (key, points) => ask('consume', key, points),
      penalty: (key, points) => ask('penalty', key, points),
      reward: (key, points) => ask('reward', key, points),
      block: (key, seconds) => ask('block', key, seconds),
      get: (key) => ask('get', key),
      delete: (key) => ask('delete', key),
    }
  }

  static async open(limiter: FlexibleLimiter): Promise<Site> {
    const server = createServer((request, response) => void answer(limiter, request, response))
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    return new Site(server)
  }

  close(): Promise<void> {
    return new Promise((resolve) => {
      this.server.close(() => resolve())
      this.server.closeAllConnections()
    })
  }
}

async function answer(limiter: FlexibleLimiter, request: IncomingMessage, response: ServerResponse): Promise<void> {
  let body = ''
  for await (const chunk of request) body += chunk
  const [verb, key, amount] = JSON.parse(body) as [keyof FlexibleLimiter, string, number]
  const say = (status: number, answer: unknown): void => void response.writeHead(status).end(JSON.stringify(answer))
  await limiter[verb](key, amount).then(
    (answer) => say(200, answer),
    (reason) => (reason instanceof Error ? say(500, String(reason)) : say(429, reason)),
  )
}

function resIn(answer: unknown): RateLimiterRes | boolean | null {
  if (typeof answer !== 'object' || answer === null) return answer as boolean | null
  const { remainingPoints, msBeforeNext, consumedPoints, isFirstInDuration } = answer as RateLimiterRes
  return new RateLimiterRes(remainingPoints, msBeforeNext, consumedPoints, isFirstInDuration)
}
