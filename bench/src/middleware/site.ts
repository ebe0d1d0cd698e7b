import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import { rateLimit } from 'sluicegate/express'
import { requireRival } from '../rivals.js'
import type { Framework, SiteMaker, SitePlan } from './middleware-settings.js'
import { ourOptions, quotaOf } from './quota.js'
import { fastifySite } from './sites/fastify.js'
import { honoSite } from './sites/hono.js'
import { koaSite } from './sites/koa.js'

interface App {
  set(name: string, value: unknown): void
  use(middleware: unknown): void
  get(path: string, handler: (request: IncomingMessage, response: ServerResponse) => void): void
}

interface Module {
  rateLimit(options: { limit: number; windowMs: number; standardHeaders?: 'draft-8'; legacyHeaders?: false }): unknown
}

/** Of the same headers, those of draft 8, which express-rate-limit always gives a partition key. */
async function expressSite(plan: SitePlan): Promise<RequestListener> {
  const express = requireRival('express') as () => App & RequestListener
  const app = express()
  if (plan.behindProxy) app.set('trust proxy', 1)
  if (plan.side === 'sluicegate')
    app.use(rateLimit(ourOptions(plan, { headers: { version: 'draft-8', partitionKey: true }, body: 'text' })))
  if (plan.side === 'rival') app.use(theirs(plan))
  app.get('/', (_, response) => {
    response.end('ok')
  })
  return app
}

function theirs(plan: SitePlan): unknown {
  const rival = requireRival('express-rate-limit') as Module
  const quota = quotaOf(plan)
  return rival.rateLimit(plan.options === 'same' ? { ...quota, standardHeaders: 'draft-8', legacyHeaders: false } : quota)
}

export const SITES: Readonly<Record<Framework, SiteMaker>> = { express: expressSite, fastify: fastifySite, hono: honoSite, koa: koaSite }
