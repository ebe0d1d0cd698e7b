import assert from 'node:assert/strict'
import { test } from 'node:test'
import fastify from 'fastify'
import { createLimiter, fixedWindow } from '../index.js'
import { address, compose, route } from '../keys/index.js'
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
