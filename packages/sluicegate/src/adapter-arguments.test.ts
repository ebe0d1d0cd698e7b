import assert from 'node:assert/strict'
import { test } from 'node:test'
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
