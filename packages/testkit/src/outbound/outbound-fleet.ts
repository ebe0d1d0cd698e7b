import type { SharedOptions } from '../../../sluicegate/dist/index.js'
import { createLimiter } from '../../../sluicegate/dist/index.js'
import { limitedFetch } from '../../../sluicegate/dist/outbound/limited-fetch.js'
import type { OutboundOptions } from '../../../sluicegate/dist/outbound/outbound-options.js'
import type { Policy } from '../../../sluicegate/dist/policy/policy.js'
import { redis } from '../../../sluicegate/dist/redis/redis.js'
import type { SharedLimiter } from '../../../sluicegate/dist/shared/shared-limiter.js'
import { SERVER_CLIENTS } from '../redis/redis-clients.js'
import { type Fault, FaultProxy } from '../servers/fault-proxy.js'
import { RedisProcess } from '../servers/redis-process.js'
import { until } from '../servers/until.js'

const [NODE_REDIS] = SERVER_CLIENTS

type LimiterOptions = Omit<SharedOptions, 'store'>

/** A server of Redis behind a proxy with faults, and processes that share a budget on it. */
export class OutboundFleet {
  readonly server: RedisProcess
  readonly proxy: FaultProxy

  private constructor(server: RedisProcess, proxy: FaultProxy) {
    this.server = server
    this.proxy = proxy
  }

  static async start(): Promise<OutboundFleet> {
    const server = await RedisProcess.start()
    return new OutboundFleet(server, await FaultProxy.before(server))
  }

  /** A process: its own client, behind the proxy. */
  async member(policy: Policy, options: LimiterOptions): Promise<AsyncDisposable & { readonly limiter: SharedLimiter }> {
    const open = await (NODE_REDIS as (typeof SERVER_CLIENTS)[0]).open([this.proxy])
    const limiter = createLimiter(policy, { store: redis(open.client), timeout: 2_000, ...options }) as SharedLimiter
    return {
      limiter,
      async [Symbol.asyncDispose]() {
        limiter.close()
        await open[Symbol.asyncDispose]()
      },
    }
  }

  async withFault<Value>(fault: Fault, during: () => Promise<Value>): Promise<Value> {
    this.proxy.set(fault)
    try {
      return await during()
    } finally {
      this.proxy.set({ kind: 'none' })
    }
  }

  async stop(): Promise<void> {
    await this.proxy.stop()
    await this.server.stop()
  }
}

/** A host that notes who came when. */
export class CountedHost {
  readonly paths: string[] = []
  readonly times: number[] = []
  underWay = 0
  most = 0
  private readonly answer: (path: string) => Response | Promise<Response>

  constructor(answer: (path: string) => Response | Promise<Response> = () => new Response('ok')) {
    this.answer = answer
  }

  readonly fetch = async (url: string, _init?: RequestInit): Promise<Response> => {
    const { pathname } = new URL(url)
    this.paths.push(pathname)
    this.times.push(performance.now())
    this.most = Math.max(this.most, ++this.underWay)
    try {
      return await this.answer(pathname)
    } finally {
      this.underWay--
    }
  }

  limited(limiter: SharedLimiter, options: OutboundOptions = {}): typeof this.fetch & { close(): void } {
    return limitedFetch(this.fetch, { limiter, ...options })
  }
}

export async function untilOut(limiter: SharedLimiter): Promise<void> {
  await until('it is an outage', async () => (await limiter.peek('another')).source === 'outage' && limiter.stats().outages > 0)
}
