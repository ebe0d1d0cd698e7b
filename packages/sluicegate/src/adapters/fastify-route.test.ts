import assert from 'node:assert/strict'
import { test } from 'node:test'
import fastify from 'fastify'
import { createLimiter, fixedWindow } from '../index.js'
import { address, compose, route } from '../keys/index.js'
import { casStore } from '../store/index.js'
import { memoryStore } from '../store-testing/index.js'
import { rateLimit } from './fastify.js'

test('fastify: the route is the pattern, wherever the limit is asked', async () => {
  const limiter = createLimiter(fixedWindow({ limit: 9, window: 'day' }))
  const limit = { limiter, key: compose(address(), route()) }
  const app = fastify()
  await app.register(rateLimit(limit))
  app.get('/users/:id', async () => 'user')
  app.get('/teams/:id', { config: { rateLimit: false }, preHandler: app.rateLimit(limit) }, async () => 'team')
  for (const path of ['/users/1', '/users/2', '/teams/1', '/none']) await app.inject(path)
  await app.close()
  const spent = (key: string): number => 9 - limiter.peek(`127.0.0.1|${key}`).remaining
  assert.deepEqual([spent('route:/users/:id'), spent('route:/teams/:id'), spent('route')], [2, 1, 1])
})

test('fastify: policies of routes share their budget over the store of the app, whatever the app limits', async () => {
  const store = casStore(memoryStore())
  const one = fixedWindow({ limit: 1, window: 'day', name: 'one' })
  const other = fixedWindow({ limit: 1, window: 'day', name: 'other' })
  const statuses: number[] = []
  for (const all of [{ store }, { store, policy: fixedWindow({ limit: 9, window: 'day', name: 'app' }) }]) {
    const app = fastify()
    await app.register(rateLimit(all))
    app.get('/one', { config: { rateLimit: one } }, async () => 'one')
    app.get('/both', { config: { rateLimit: { store: undefined, limits: [{ policy: other }] } } }, async () => 'both')
    app.get('/own', { config: { rateLimit: createLimiter(one) } }, async () => 'own')
    for (const path of ['/one', '/both', '/own']) statuses.push((await app.inject(path)).statusCode)
    await app.close()
  }
  assert.deepEqual(statuses, [200, 200, 200, 429, 429, 200])
})
