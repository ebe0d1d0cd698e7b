import type { RequestListener } from 'node:http'
import { rateLimit } from 'sluicegate/hono'
import { requireRival } from '../../rivals.js'
import type { SitePlan } from '../middleware-settings.js'
import { ourOptions, quotaOf } from '../quota.js'

interface Context {
  readonly req: { header(name: string): string | undefined }
  text(body: string): unknown
}

interface App {
  use(middleware: unknown): void
  get(path: string, handler: (context: Context) => unknown): void
  readonly fetch: unknown
}

interface Server {
  getRequestListener(fetch: unknown): RequestListener
}

interface ConnInfo {
  getConnInfo(context: Context): { readonly remote: { readonly address?: string } }
}

interface Module {
  rateLimiter(options: { limit: number; windowMs: number; keyGenerator: (context: Context) => string }): unknown
}

/** On Node's server, by way of its adapter. Those of draft 6 are the same headers. */
export async function honoSite(plan: SitePlan): Promise<RequestListener> {
  const { Hono } = requireRival('hono') as { readonly Hono: new () => App }
  const { getRequestListener } = requireRival('@hono/node-server') as Server
  const app = new Hono()
  if (plan.side === 'sluicegate') app.use(rateLimit(ourOptions(plan, { headers: 'draft-6', body: 'text' })))
  if (plan.side === 'rival') app.use(theirs(plan))
  app.get('/', (context) => context.text('ok'))
  return getRequestListener(app.fetch)
}

/** It has no key of its own: the address of the socket, or of the header as its guide reads it. */
function theirs(plan: SitePlan): unknown {
  const { rateLimiter } = requireRival('hono-rate-limiter') as Module
  const { getConnInfo } = requireRival('@hono/node-server/conninfo') as ConnInfo
  const keyGenerator = plan.behindProxy
    ? (context: Context): string => context.req.header('x-forwarded-for') ?? ''
    : (context: Context): string => getConnInfo(context).remote.address ?? ''
  return rateLimiter({ ...quotaOf(plan), keyGenerator })
}
