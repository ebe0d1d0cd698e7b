// What others do with a response while a limiter is asked that answers later.
import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import express, { type NextFunction, type Request, type Response } from 'express'
import fastify from 'fastify'
import { listening, promisedLimiter } from 'sluicegate-testkit/adapters/harness.js'
import { ask } from 'sluicegate-testkit/adapters/http-client.js'
import { createLimiter, fixedWindow, type Policy } from '../index.js'
import { rateLimit as limitExpress } from './express.js'
import { rateLimit as limitFastify } from './fastify.js'

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
