import type { RequestListener } from 'node:http'
import { rateLimit } from 'sluicegate/koa'
import { requireRival } from '../../rivals.js'
import type { SitePlan } from '../middleware-settings.js'
import { ourOptions, quotaOf } from '../quota.js'

interface App {
  proxy: boolean
  maxIpsCount: number
  use(middleware: unknown): void
  callback(): RequestListener
}

type Module = (options: { driver: 'memory'; db: Map<unknown, unknown>; max: number; duration: number }) => unknown

/** `X-RateLimit-*` with the moment of the reset are the same headers. */
export async function koaSite(plan: SitePlan): Promise<RequestListener> {
  const Koa = requireRival('koa') as new () => App
  const app = new Koa()
  app.proxy = plan.behindProxy
  app.maxIpsCount = 1
  if (plan.side === 'sluicegate') app.use(rateLimit(ourOptions(plan, { headers: 'x-ratelimit', body: 'text' })))
  if (plan.side === 'rival') app.use(theirs(plan))
  app.use((context: { body: unknown }) => {
    context.body = 'ok'
  })
  return app.callback()
}

function theirs(plan: SitePlan): unknown {
  const ratelimit = requireRival('koa-ratelimit') as Module
  const { limit, windowMs } = quotaOf(plan)
  return ratelimit({ driver: 'memory', db: new Map(), max: limit, duration: windowMs })
}
