import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Hono } from 'hono'
import { freshWarnings } from 'sluicegate-testkit/unhandled-rejections.js'
import { rateLimit as limitFetch } from '../adapters/fetch.js'
import { rateLimit as limitHono } from '../adapters/hono.js'
import { createLimiter, tokenBucket } from '../index.js'
import { address, apiKey, compose, method } from '../keys/index.js'

freshWarnings()

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

test('in other runtimes a request without an address is denied, and one warning has a remedy', async () => {
  const warned = new Promise<Error & { code?: string }>((resolve) => process.once('warning', resolve))
  const limit = limitFetch({ limiter })
  const late = limitHono({ limiter, cost: async () => 1 })
  const answers = [
    await limit(new Request('http://a/')),
    await limit.wrap(() => new Response())(new Request('http://a/')),
    await new Hono().use(limitHono({ limiter })).request('/'),
    await new Hono().use(late).request('/'),
  ]
  for (const response of answers) {
    assert.deepEqual([response?.status, response?.headers.get('content-type')], [400, 'application/problem+json'])
    assert.ok(!CURE.test((await response?.text()) ?? ''), 'the remedy is for the application')
  }
  const { code, message } = await warned
  assert.equal(code, 'SLUICEGATE_ADDRESS_MISSING')
  assert.match(message, CURE)
})

test('a warning about another missing key, once for a policy, does not mention addresses', async () => {
  const warnings: (Error & { code?: string })[] = []
  const listen = (warning: Error): void => void warnings.push(warning)
  process.on('warning', listen)
  const limit = limitFetch({ limiter, key: apiKey() })
  for (let i = 0; i < 3; i++) assert.equal((await limit(new Request('http://a/')))?.status, 401)
  await new Promise(setImmediate)
  process.off('warning', listen)
  assert.deepEqual(
    warnings.map(({ code }) => code),
    ['SLUICEGATE_KEY_MISSING'],
  )
  assert.match(warnings[0]?.message ?? '', /apiKey\(x-api-key\) found no key in a request, .* say onMissingKey: 'skip'/)
  assert.doesNotMatch(warnings[0]?.message ?? '', CURE)
})
