import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Hono } from 'hono'
import { rateLimit as limitFetch } from '../adapters/fetch.js'
import { rateLimit as limitHono } from '../adapters/hono.js'
import { createLimiter, tokenBucket } from '../index.js'
import { address, apiKey, compose, method } from '../keys/index.js'

const limiter = createLimiter(tokenBucket({ limit: 5, window: '1m' }))
const CURE = /say remoteAddress, or a key that needs none/

/** Runs as if in a runtime that is known to tell no address. */
function onTheEdge(run: () => void): void {
  Object.assign(globalThis, { EdgeRuntime: 'edge-runtime' })
  try {
    run()
  } finally {
    Reflect.deleteProperty(globalThis, 'EdgeRuntime')
  }
}

test('in a runtime without addresses a limit by address is refused when it is made, with a remedy', () => {
  onTheEdge(() => {
    for (const make of [limitFetch, limitHono] as ((options: object) => unknown)[]) {
      for (const options of [{ limiter }, { limiter, key: address() }, { limits: [{ limiter, key: apiKey() }, { limiter }] }]) {
        assert.throws(() => make(options), { code: 'KEY_MISSING', option: 'key', message: CURE })
      }
      const seen = { limiter, remoteAddress: () => '192.0.2.1' }
      const others = [address({ trustedHops: 1 }), apiKey(), apiKey({ otherwise: address() }), compose(apiKey(), method())]
      for (const options of [seen, { limiter, key: () => 'all' }, ...others.map((key) => ({ limiter, key }))]) assert.ok(make(options))
    }
  })
})

test('in other runtimes the first request without an address gets an error with a remedy, and a warning is emitted', async () => {
  const warned = new Promise<Error & { code?: string }>((resolve) => process.once('warning', resolve))
  const limit = limitFetch({ limiter })
  assert.throws(() => limit(new Request('http://a/')), { code: 'KEY_MISSING', message: CURE })
  await assert.rejects(limit.wrap(() => new Response())(new Request('http://a/')), { code: 'KEY_MISSING', message: CURE })
  const { code, message } = await warned
  assert.equal(code, 'SLUICEGATE_ADDRESS_MISSING')
  assert.match(message, CURE)
  const app = new Hono().use(limitHono({ limiter })).onError((error, context) => context.text(error.message, 500))
  const response = await app.request('/')
  assert.equal(response.status, 500)
  assert.match(await response.text(), CURE)
  const late = limitHono({ limiter, cost: async () => 1 })
  assert.match(
    await (
      await new Hono()
        .use(late)
        .onError((error, context) => context.text(error.message))
        .request('/')
    ).text(),
    CURE,
  )
})

test('an error about another missing key does not mention addresses', () => {
  const limit = limitFetch({ limiter, key: apiKey() })
  assert.throws(
    () => limit(new Request('http://a/')),
    (error: Error) => !CURE.test(error.message),
  )
})
