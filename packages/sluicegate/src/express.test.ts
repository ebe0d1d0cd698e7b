import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import { after, test } from 'node:test'
import express, { type NextFunction, type Request, type Response } from 'express'
import express4, { type Request as Request4 } from 'express4'
import { rateLimit } from './express.js'
import { fixedWindow } from './index.js'
import { address, compose, route } from './keys/index.js'
import { adapterSuite } from './testing/adapters/adapter-suite.js'
import type { Harness } from './testing/adapters/harness.js'
import { ask } from './testing/adapters/http-client.js'
import { listening } from './testing/adapters/listening.js'
import { ROUTES, type Site } from './testing/adapters/site.js'

async function send(site: Site, name: string, status: number | undefined, response: Response): Promise<void> {
  const reply = await site.reply(name, status)
  response.status(reply.status)
  if (reply.pieces === undefined) {
    response.send(reply.text)
    return
  }
  for await (const piece of reply.pieces) response.write(piece)
  response.end()
}

function harness(name: string, framework: typeof express): Harness<Request> {
  return {
    name,
    limitsUnknown: true,
    limitsOptions: true,
    header: (request, header) => request.get(header),
    start(site, { all, strict, before }) {
      const app = framework()
      if (before !== undefined) app.use((_request, _response, next) => void before().then(() => next()))
      if (all !== undefined) app.use(rateLimit(all))
      if (strict !== undefined) app.use('/strict', rateLimit(strict))
      for (const path of ROUTES) {
        app.get(`/${path}`, (_request, response, next) => send(site, path, undefined, response).catch(next))
      }
      app.get('/status/:status', (request, response, next) => send(site, 'status', Number(request.params.status), response).catch(next))
      app.use((error: unknown, _request: Request, response: Response, _next: NextFunction) => {
        response.status(500).send(site.caught(error))
      })
      return listening(createServer(app))
    },
  }
}

const warned: string[] = []
process.on('warning', ({ name, code }: Error & { code?: string }) => void (name === 'SluicegateWarning' && warned.push(String(code))))
after(() => assert.equal(warned.filter((code) => code === 'SLUICEGATE_PROXY_UNTRUSTED').length, 1, 'headers of proxies are warned of once'))

adapterSuite(harness('express 5', express))
adapterSuite(harness('express 4', express4 as unknown as typeof express))

test('the types of Express 4 fit as those of 5 do', () => {
  const options = { policy: fixedWindow({ limit: 1, window: 'day' }) }
  express4().use(rateLimit<Request4>({ ...options, key: (request) => request.ip }))
  express4().get('/', rateLimit<Request4>(options), (_request, response) => response.end())
  express().use('/api', rateLimit({ ...options, key: (request) => request.ip }))
  assert.throws(() =>
    express4().use(
      rateLimit<Request4>({
        ...options, // @ts-expect-error: no such option
        keys: 1,
      }),
    ),
  )
})

test('the route is the pattern of the route itself, and a mounted router gives clients no part of the key', async (t) => {
  const app = express()
  const router = express.Router()
  const limit = rateLimit({ policy: fixedWindow({ limit: 2, window: 'day' }), key: compose(address(), route()) })
  router.get('/users/:id', limit, (_request, response) => void response.send('user'))
  router.get('/teams/:id', limit, (_request, response) => void response.send('team'))
  app.use('/:tenant', router)
  const { port, close } = await listening(createServer(app))
  t.after(close)
  const statuses = []
  for (const path of ['/a/users/1', '/b/users/2', '/c/users/3', '/a/teams/1']) statuses.push((await ask(port, path)).status)
  assert.deepEqual(statuses, [200, 200, 429, 200])
})
