import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import express, { type NextFunction, type Request, type Response } from 'express'
import fastify from 'fastify'
import { listening, promisedLimiter } from 'sluicegate-testkit/adapters/harness.js'
import { ask } from 'sluicegate-testkit/adapters/http-client.js'
import { createLimiter, fixedWindow, type Policy, tokenBucket } from '../index.js'
import { rateLimit as limitExpress } from './express.js'
import { rateLimit as limitFastify } from './fastify.js'
import { rateLimit as limitFetch } from './fetch.js'
import { rateLimit as limitHono } from './hono.js'
import { rateLimit as limitKoa } from './koa.js'
import { RateLimitGuard, RateLimitModule } from './nest.js'

/** Nothing at all is something to those of Fastify and Nest, which limit routes alone then. */
const something = (argument: unknown): never => (argument ?? null) as never

/** All that take a policy, a limiter or options. */
const TAKING: Readonly<Record<string, (argument: never) => unknown>> = {
  express: limitExpress,
  fastify: (argument) => limitFastify(something(argument)),
  fetch: limitFetch,
  hono: limitHono,
  koa: limitKoa,
  'nest, as a module': (argument) => RateLimitModule.forRoot(something(argument)),
  'nest, as a guard': (argument) => new RateLimitGuard(something(argument)),
}

for (const [name, taking] of Object.entries(TAKING)) {
  test(`${name}: what is neither a policy nor a limiter nor options is refused by name`, () => {
    for (const wrong of [undefined, null, 5, '100/m', () => undefined]) {
      assert.throws(() => taking(wrong as never), { name: 'PolicyError', code: 'OPTION_INVALID', option: 'options' })
    }
  })
}

for (const [name, taking] of Object.entries(TAKING)) {
  test(`${name}: a misspelt or missing policy is refused, and never means no limit`, () => {
    const policy = tokenBucket({ limit: 1, window: '1m' })
    for (const [wrong, code, option] of [
      [{ polcy: policy }, 'OPTION_UNKNOWN', 'polcy'],
      [{ max: 5, timeWindow: '1m' }, 'OPTION_UNKNOWN', 'max'],
      [{ ttl: 60_000, limit: 5 }, 'OPTION_UNKNOWN', 'ttl'],
      [{ policy: undefined }, 'OPTION_INVALID', 'policy'],
      [{ cost: 2, key: () => 'all' }, 'OPTION_INVALID', 'policy'],
    ] as const) {
      assert.throws(() => taking(wrong as never), { name: 'PolicyError', code, option })
    }
  })
}

test('fastify and nest: defaults of routes are no limit of all, and looked at all the same', () => {
  const defaults = { counts: 'failures', body: 'text', key: () => 'all' } as const
  for (const taking of [limitFastify, RateLimitModule.forRoot] as ((options: object) => unknown)[]) assert.ok(taking(defaults))
  assert.throws(() => RateLimitModule.forRoot({ ...defaults, counts: 'fail' as never }), { option: 'counts' })
})

test('nest: a wrong placement of the guard is refused by name', () => {
  const policy = tokenBucket({ limit: 1, window: '1m' })
  const useFactory = (): typeof policy => policy
  for (const place of [{ globl: false }, { global: 'no' }] as never[]) {
    const [option] = Object.keys(place)
    assert.throws(() => RateLimitModule.forRoot(policy, place), { name: 'PolicyError', option })
    assert.throws(() => RateLimitModule.forRootAsync({ useFactory, ...(place as object) }), { name: 'PolicyError', option })
  }
  assert.throws(() => RateLimitModule.forRootAsync({} as never), { code: 'OPTION_INVALID', option: 'useFactory' })
})

// What others do with a response while a limiter is asked that answers later.

const perDay = (limit: number): Policy => fixedWindow({ limit, window: 'day' })

test('express: what was sent by another while the limiter was asked stays as it is, and is no error', async (t) => {
  const errors: unknown[] = []
  const app = express()
  app.use((_request, response, next) => {
    next()
    response.end('sooner')
  })
  app.use(limitExpress(promisedLimiter(createLimiter(perDay(1)))))
  app.use((_request, _response) => undefined)
  app.use((error: unknown, _request: Request, _response: Response, _next: NextFunction) => void errors.push(error))
  const { port, close } = await listening(createServer(app))
  t.after(close)
  for (let i = 0; i < 2; i++) {
    const { status, headers, text } = await ask(port, '/')
    assert.deepEqual([status, text, headers.ratelimit], [200, 'sooner', undefined])
  }
  assert.deepEqual(errors, [])
})

test('fastify: what was answered by another while the limiter was asked goes no further', async (t) => {
  let handled = 0
  const warnings: string[] = []
  const app = fastify({ logger: { level: 'warn', stream: { write: (line: string) => void warnings.push(line) } } })
  app.addHook('onRequest', (_request, reply, done) => {
    done()
    reply.send('sooner')
  })
  await app.register(limitFastify(promisedLimiter(createLimiter(perDay(1)))))
  app.get('/', async () => ++handled)
  await app.listen({ port: 0, host: '127.0.0.1' })
  t.after(() => app.close())
  const { port } = app.server.address() as AddressInfo
  for (let i = 0; i < 2; i++) {
    const { status, headers, text } = await ask(port, '/')
    assert.deepEqual([status, text, headers.ratelimit], [200, 'sooner', undefined])
  }
  assert.deepEqual([handled, warnings], [0, []])
})
