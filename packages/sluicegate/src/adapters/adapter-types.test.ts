// What the compiler says of adapters: most of it is settled when this file is compiled, and each comment that expects an error needs one.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Controller, Get, type Type } from '@nestjs/common'
import express, { type Request as ExpressRequest } from 'express'
import fastify, { type FastifyRequest } from 'fastify'
import { Hono, type Context as HonoContext, type MiddlewareHandler } from 'hono'
import type { Context } from 'koa'
import { createLimiter, type Decision, fixedWindow } from '../index.js'
import { address, apiKey, compose, subject } from '../keys/index.js'
import type * as ofExpress from './express.js'
import { rateLimit as limitExpress } from './express.js'
import type * as ofFastify from './fastify.js'
import { type RateLimitOptions as FastifyOptions, rateLimit as limitFastify } from './fastify.js'
import type * as ofFetch from './fetch.js'
import { rateLimit as limitFetch } from './fetch.js'
import type * as ofHono from './hono.js'
import { type RateLimitOptions as HonoOptions, rateLimit as limitHono } from './hono.js'
import type * as ofKoa from './koa.js'
import { rateLimit as limitKoa } from './koa.js'
import type * as ofNest from './nest.js'
import { type NestRequest, RateLimit, RateLimitGuard, RateLimitModule, SkipRateLimit } from './nest.js'

const policy = fixedWindow({ limit: 1, window: 'day' })
const other = fixedWindow({ limit: 2, window: 'day' })
/** Whose reader knows no request at all: nothing follows from it for the functions beside it. */
const LIMIT = { policy, key: address() }

test('express: functions get its request, and a request of a type of its own', () => {
  interface Signed extends ExpressRequest {
    readonly user: { readonly id: string }
  }
  limitExpress({ policy, key: (request) => request.ip, skip: (request) => request.path === '/' })
  const signed = limitExpress<Signed>({ policy, key: ({ user }) => user.id })
  // Wherever middleware of any request may stand.
  express()
    .use(signed)
    .use('/api', signed)
    .get('/users/:id', signed, (request: ExpressRequest<{ id: string }>, response) => {
      response.send(request.params.id)
    })
  const mounted: express.RequestHandler = signed
  assert.equal(mounted, signed)
  // @ts-expect-error: no such property of a signed request
  limitExpress<Signed>({ policy, key: ({ missing }) => missing })
  limitExpress({ limits: [{ policy, key: address() }], onDenied: ({ kind }) => ({ status: kind === 'outage' ? 503 : 429 }) })
  limitExpress({ policy, key: apiKey({ otherwise: address() }), cost: (request) => (request.path === '/export' ? 10 : 1) })
  limitExpress({
    limits: [LIMIT, { policy: other, key: (request) => request.ip }],
    onDenied: (_, { path }) => ({ headers: [['X-Path', path]] }),
  })
  limitExpress<Signed>({ policy, key: subject((request: Signed) => request.user.id), skip: ({ user }) => user.id === 'ada' })
  // @ts-expect-error: a request of Express has no such thing
  limitExpress({ policy, key: (request) => request.nothing })
  // @ts-expect-error: a key is a reader or a function
  assert.throws(() => limitExpress({ policy, key: 'ip' }), { option: 'key' })
})

test('fastify: the plugin, the config of routes, the decorators', async () => {
  const app = fastify()
  limitFastify({ limits: [LIMIT, { policy: other, key: ({ hostname }) => hostname }], key: apiKey(), skip: ({ url }) => url === '/' })
  const options: FastifyOptions = { policy, hook: 'preHandler', key: (request) => request.ip }
  await app.register(limitFastify(options))
  app.get('/', { config: { rateLimit: { policy, key: (request: FastifyRequest) => request.hostname } } }, async (request) => {
    const decision: Decision | null = request.rateLimit
    return decision?.remaining
  })
  app.get('/free', { config: { rateLimit: false }, preHandler: app.rateLimit(createLimiter(policy)) }, async () => 'ok')
  // @ts-expect-error: neither a limit nor none
  const wrong = { config: { rateLimit: true } } satisfies Parameters<typeof app.get>[1]
  assert.throws(() => app.get('/wrong', wrong as never, async () => 'ok'))
  // @ts-expect-error: no such hook
  assert.throws(() => limitFastify({ policy, hook: 'onSend' }))
  assert.equal((await app.inject('/')).payload, '0')
  await app.close()
})

test('fastify: the hook of a route fits instances over HTTP/2, with loggers, and routes of any types', async () => {
  for (const app of [fastify({ http2: true }), fastify({ http2: true, logger: { level: 'silent' } })]) {
    await app.register(limitFastify(policy))
    app.get('/', { onRequest: app.rateLimit(policy), config: { rateLimit: { policy, key: ({ ip }) => ip } } }, async () => 'ok')
    await app.close()
  }
  const app = fastify({ logger: { level: 'silent' } })
  await app.register(limitFastify(policy))
  app.get<{ Params: { id: string } }>('/:id', { preHandler: app.rateLimit(policy) }, async ({ params }) => params.id)
  app.setNotFoundHandler({ preHandler: app.rateLimit(policy) }, async () => 'none')
  assert.equal((await app.inject('/ada')).payload, 'ada')
  await app.close()
})

test('hono: variables of an app are known to its keys', async () => {
  interface Env {
    Variables: { readonly user: string }
  }
  const limiter = createLimiter(policy)
  const app = new Hono<Env>()
  app.use((context, next) => {
    context.set('user', 'ada')
    return next()
  })
  app.use(limitHono({ limiter, key: (context) => context.get('user') }))
  app.use(limitHono<Env>({ policy, key: compose(apiKey(), address()), skip: (context) => context.get('user') === 'ada' }))
  const named: HonoOptions<Env> = { policy, key: address(), cost: (context) => context.get('user').length, skip: () => true }
  app.use(limitHono(named))
  limitHono({ limits: [LIMIT, { policy: other, key: (context) => context.req.path }], key: apiKey() })
  const ofApp: MiddlewareHandler<Env> = limitHono({ policy, key: (context: HonoContext<Env>) => context.var.user })
  // @ts-expect-error: the variable is text
  const counted: MiddlewareHandler<Env> = limitHono({ policy, cost: (context): number => context.get('user') })
  // @ts-expect-error: no such variable
  limitHono<Env>({ policy, key: (context) => context.get('missing') })
  await app.request('/')
  assert.deepEqual([limiter.peek('ada').remaining, typeof ofApp, typeof counted], [0, 'function', 'function'])
})

test('koa and fetch: functions get what they are made for', () => {
  limitKoa({ policy, key: (context) => context.ip, counts: (status, context: Context) => status > 400 && context.method === 'POST' })
  limitKoa({ limits: [LIMIT, { policy: other, key: ({ ip }) => ip }], key: apiKey(), skip: ({ path }) => path === '/' })
  limitFetch({ limits: [LIMIT, { policy: other, key: ({ url }) => url }], key: apiKey(), skip: ({ method }) => method === 'HEAD' })
  class Nearer extends Request {
    readonly nearest = 'here'
  }
  const limit = limitFetch<Nearer>({ policy, key: (request) => request.nearest })
  // @ts-expect-error: a request of another kind
  const plain = (): unknown => limit(new Request('http://localhost/'))
  assert.equal((plain() as Response).status, 400)
  const wrapped: (request: Nearer, info: { id: number }) => Promise<Response> = limit.wrap((_request, info: { id: number }) =>
    Response.json(info),
  )
  assert.equal(typeof wrapped, 'function')
})

test('whatever options are made of, it is a property of the options of each adapter', () => {
  type Choice = Extract<NonNullable<ofExpress.RateLimitOptions['onOutage']>, (...args: never) => unknown>
  type Named = [
    Parameters<Choice>[0],
    ofFastify.RateLimitOptions['key'] | ofFetch.RateLimitOptions['key'] | ofHono.RateLimitOptions['headers'],
    ofNest.RateLimitOptions<NestRequest>['onOutage'] | ofKoa.RateLimitOptions<Context>['body'] | ofKoa.Denial | ofExpress.EdgeLimiter,
    ofExpress.RateLimitOptions<ExpressRequest>['counts'] | ofFastify.RateLimitOptions<FastifyRequest>['policy'],
  ]
  const seen: Named[0][] = []
  const onOutage: Choice = (outage) => void seen.push(outage)
  limitExpress({ policy, onOutage })
  assert.deepEqual(seen, [])
})

test('nest: decorators of both kinds, the module, the guard', () => {
  @Controller()
  @RateLimit(policy)
  class Both {
    @Get()
    @RateLimit({ policy, key: (request: ExpressRequest) => request.ip })
    express() {}

    @SkipRateLimit()
    none() {}

    @RateLimit({ policy, key: ({ user }) => String(user), skip: ({ method }: NestRequest) => method === 'HEAD' })
    either() {}
  }
  RateLimitModule.forRoot({ limits: [LIMIT, { policy: other, key: ({ ip }) => ip }], key: apiKey(), skip: ({ url }) => url === '/' })
  RateLimitModule.forRoot<ExpressRequest>({ policy, key: apiKey(), skip: ({ path }) => path === '/' })
  const onMethod: (value: () => void, context: ClassMethodDecoratorContext) => void = RateLimit(policy)
  const onClass: (value: Type, context: ClassDecoratorContext) => void = SkipRateLimit()
  // @ts-expect-error: a decorator is made by a call
  const unmade: MethodDecorator = RateLimit
  class Settings {
    readonly limit = 1
  }
  const { providers = [] } = RateLimitModule.forRootAsync({
    inject: [Settings],
    useFactory: ({ limit }: Settings) => fixedWindow({ limit, window: 1 }),
  })
  // @ts-expect-error: no limit comes of it
  RateLimitModule.forRootAsync({ useFactory: () => 5 })
  assert.ok(providers.includes(RateLimitGuard))
  assert.deepEqual([typeof Both, typeof onMethod, typeof onClass, typeof unmade], Array(4).fill('function'))
})
