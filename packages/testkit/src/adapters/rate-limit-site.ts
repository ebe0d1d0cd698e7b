import { createServer } from 'node:http'
import type { TestContext } from 'node:test'
import express, { type NextFunction, type Request, type Response } from 'express'
import { rateLimit } from '../../../sluicegate/dist/compat/express-rate-limit/index.js'
import type { RateLimitMiddleware } from '../../../sluicegate/dist/compat/express-rate-limit/rate-limit.js'
import type { RateLimitOptions } from '../../../sluicegate/dist/compat/express-rate-limit/rate-limit-options.js'
import { createLimiter, type Limiter, type ManualClock, manualClock, type Policy } from '../../../sluicegate/dist/index.js'
import { listening } from './harness.js'
import { ask, type ClientReply } from './http-client.js'

export const MINUTE = 60_000
/** Of all limits here. */
export const clock: ManualClock = manualClock(10 * MINUTE)

/** A limiter of that clock. */
export const here = (policy: Policy): Limiter => createLimiter(policy, { clock })

/** An app behind a limit. */
export interface Site {
  readonly limit: RateLimitMiddleware
  readonly port: number
  /** Errors passed to the app. */
  readonly errors: unknown[]
  ask(path?: string): Promise<ClientReply>
}

/** An app with this limit in front; `/status/:status` answers with that status, `/open` never ends. */
export async function site(t: TestContext, options: RateLimitOptions, framework = express): Promise<Site> {
  const limit = rateLimit({ windowMs: MINUTE, limit: 2, create: here, ...options })
  const app = framework()
  app.use(limit)
  app.get('/status/:status', (request, response) => void response.status(Number(request.params.status)).send('done'))
  app.get('/open', (_request, response) => void response.write('begun'))
  app.get('/', (_request, response) => void response.send('hello'))
  const errors = errorsOf(app)
  const { port, close } = await listening(createServer(app))
  t.after(close)
  return { limit, port, errors, ask: (path = '/') => ask(port, path) }
}

/** What comes to the error handler of an app, which answers with 500; the last to be called. */
export function errorsOf(app: express.Express): unknown[] {
  const errors: unknown[] = []
  app.use((error: unknown, _request: Request, response: Response, _next: NextFunction) => {
    errors.push(error)
    response.status(500).send('error')
  })
  return errors
}

/** What is answered to these paths in turn. */
export async function statuses({ ask }: Site, ...paths: readonly string[]): Promise<number[]> {
  const found = []
  for (const path of paths) found.push((await ask(path)).status)
  return found
}

/** How often the client of these tests was counted. */
export const usedBy = async ({ limit }: Site): Promise<number> => (await limit.getKey('127.0.0.1'))?.totalHits ?? 0
