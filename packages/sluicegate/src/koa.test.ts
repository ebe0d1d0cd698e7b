import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import { Readable } from 'node:stream'
import { test } from 'node:test'
import Router from '@koa/router'
import Koa, { type Context } from 'koa'
import { fixedWindow } from './index.js'
import { address, compose, route } from './keys/index.js'
import { rateLimit } from './koa.js'
import { adapterSuite } from './testing/adapters/adapter-suite.js'
import type { Harness } from './testing/adapters/harness.js'
import { ask } from './testing/adapters/http-client.js'
import { listening } from './testing/adapters/listening.js'
import { ROUTES, type Site } from './testing/adapters/site.js'

async function send(site: Site, name: string, status: number | undefined, context: Context): Promise<void> {
  const { pieces, text, status: code } = await site.reply(name, status)
  context.status = code
  context.body = pieces === undefined ? text : Readable.from(pieces, { objectMode: false })
}

/** @param catches whether middleware of the app's own answers errors, instead of Koa. */
function harness(name: string, catches: boolean): Harness<Context> {
  return {
    name,
    limitsUnknown: true,
    limitsOptions: true,
    header: (context, header) => context.get(header) || undefined,
    start(site, { all, strict, before }) {
      const app = new Koa()
      app.on('error', (error) => {
        // A client that hung up while its response was being sent.
        if (!['ERR_STREAM_PREMATURE_CLOSE', 'ECONNRESET', 'EPIPE'].includes(error.code)) site.caught(error)
      })
      app.use(async (context, next) => {
        if (!catches) return next().catch((error) => Promise.reject(Object.assign(error, { expose: true, status: 500 })))
        try {
          await next()
        } catch (error) {
          context.status = 500
          context.body = site.caught(error)
        }
      })
      if (before !== undefined) app.use((_context, next) => before().then(next))
      if (all !== undefined) app.use(rateLimit(all))
      const router = new Router()
      if (strict !== undefined) router.use('/strict', rateLimit(strict) as never)
      for (const path of ROUTES) router.get(`/${path}`, (context) => send(site, path, undefined, context as never))
      router.get('/status/:status', (context) => send(site, 'status', Number(context.params.status), context as never))
      app.use(router.routes() as never)
      return listening(createServer(app.callback()))
    },
  }
}

adapterSuite(harness('koa', true))
adapterSuite(harness('koa answering errors itself', false))

test('koa: the route is the pattern that the router found', async (t) => {
  const app = new Koa()
  const router = new Router()
  const limit = rateLimit({ policy: fixedWindow({ limit: 2, window: 'day' }), key: compose(address(), route()) })
  router.get('/users/:id', limit, (context) => {
    context.body = 'user'
  })
  app.use(router.routes())
  const { port, close } = await listening(createServer(app.callback()))
  t.after(close)
  const statuses = []
  for (const id of [1, 2, 3]) statuses.push((await ask(port, `/users/${id}`)).status)
  assert.deepEqual(statuses, [200, 200, 429])
})
