import assert from 'node:assert/strict'
import { test } from 'node:test'
import { tokenBucket } from '../index.js'
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
