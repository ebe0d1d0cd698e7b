import type { RequestListener } from 'node:http'
import { rateLimit } from 'sluicegate/fastify'
import { requireRival } from '../../rivals.js'
import { clientAddresses } from '../exchange.js'
import type { SitePlan } from '../middleware-settings.js'
import { ourOptions, quotaOf } from '../quota.js'

interface App {
  register(plugin: unknown, options?: object): PromiseLike<unknown>
  get(path: string, handler: (request: unknown, reply: { send(body: string): void }) => void): void
  ready(): PromiseLike<unknown>
  readonly routing: RequestListener
}

/** `X-RateLimit-*` with the seconds until the reset are the same headers, and JSON the same body. */
export async function fastifySite(plan: SitePlan): Promise<RequestListener> {
  const fastify = requireRival('fastify') as (options: { trustProxy: string | false }) => App
  // A number of hops is never believed: it has to be an address.
  const app = fastify({ trustProxy: plan.behindProxy ? '127.0.0.1' : false })
  if (plan.side === 'sluicegate') {
    await app.register(rateLimit(ourOptions(plan, { headers: { version: 'x-ratelimit', reset: 'delta-seconds' }, body: 'problem' })))
  }
  if (plan.side === 'rival') await app.register(requireRival('@fastify/rate-limit'), theirs(plan))
  app.get('/', (_, reply) => {
    reply.send('ok')
  })
  await app.ready()
  return app.routing
}

/** Its store remembers 5,000 clients: with more, it would forget those that it is to deny. */
function theirs(plan: SitePlan): object {
  const { limit, windowMs } = quotaOf(plan)
  return { max: limit, timeWindow: windowMs, cache: clientAddresses('many').length }
}
