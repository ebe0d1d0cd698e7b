import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import { test } from 'node:test'
import express from 'express'
import { listening } from 'sluicegate-testkit/adapters/harness.js'
import { type PlainRequest, plainFacts } from 'sluicegate-testkit/adapters/http-client.js'
import { rateLimit as limitExpress } from '../adapters/express.js'
import { rateLimit as standIn } from '../compat/express-rate-limit/index.js'
import { createLimiter, fixedWindow, type Limiter, manualClock, tokenBucket } from '../index.js'
import { address } from '../keys/address.js'
import { compose, method } from '../keys/readers.js'
import { type UsageWarning, warnOnce } from '../warn-once.js'
import { Middleware } from './middleware.js'
import type { MiddlewareOptions } from './middleware-options.js'
import { MisuseWatch } from './misuse-watch.js'

const POLICY = tokenBucket({ name: 'p', limit: 1_000_000, window: '1s' })
const FORWARDED: PlainRequest = { headers: { 'x-forwarded-for': '198.51.100.1' } }

class Watched {
  readonly seen: string[] = []
  readonly watch = new MisuseWatch((code, message) => this.seen.push(`${code}: ${message}`))

  middleware(options: MiddlewareOptions<PlainRequest>): (...requests: PlainRequest[]) => void {
    const middleware = new Middleware<PlainRequest>(options, { watch: this.watch })
    return (...requests) => {
      for (const request of requests) middleware.handle(plainFacts(request), request)
    }
  }

  codes(): (string | undefined)[] {
    return this.seen.map((message) => message.split(':')[0])
  }
}

function times(n: number, request: PlainRequest): PlainRequest[] {
  return Array.from({ length: n }, () => ({ ...request }))
}

function limited(): Limiter {
  return createLimiter(POLICY, { clock: manualClock() })
}

const EXPECTED: UsageWarning = 'SLUICEGATE_PROXY_UNTRUSTED'

test('headers of a proxy while no hop is trusted are warned about, once, with what to do and where to read on', () => {
  const watched = new Watched()
  watched.middleware({ limiter: limited() })(...times(5, {}), ...times(20, FORWARDED))
  watched.middleware({ limiter: limited(), key: compose(address(), method()) })(...times(20, FORWARDED))
  assert.deepEqual(watched.codes(), [EXPECTED])
  assert.match(
    watched.seen[0] ?? '',
    /address\(\{ trustedHops: 1 \}\); see node_modules\/sluicegate\/docs\/warnings\.md#sluicegate_proxy_untrusted$/,
  )
})

test('a trusted proxy that never shows is warned about after a hundred requests without it', () => {
  const watched = new Watched()
  const ask = watched.middleware({ limiter: limited(), key: address({ trustedHops: 1 }) })
  ask(...times(99, {}))
  assert.deepEqual(watched.codes(), [])
  ask({})
  assert.deepEqual(watched.codes(), ['SLUICEGATE_PROXY_MISSING'])
})

test('checks of health past the proxy are no fault', () => {
  const watched = new Watched()
  watched.middleware({ limiter: limited(), key: address({ trustedHops: 1 }) })(...times(50, {}), FORWARDED, ...times(500, {}))
  watched.middleware({ limiter: limited(), key: address({ trustedNetworks: ['loopback'] }) })(FORWARDED, ...times(500, {}))
  assert.deepEqual(watched.codes(), [])
})

test('keys that are not addresses imply nothing about proxies', () => {
  const watched = new Watched()
  watched.middleware({ limiter: limited(), key: () => 'all' })(...times(200, FORWARDED))
  watched.middleware({ limiter: limited(), key: method() })(...times(200, FORWARDED))
  assert.deepEqual(watched.codes(), [])
})

test('the same limiter asked twice about one request and key is warned about, also through two gatekeepers', () => {
  const watched = new Watched()
  const limiter = limited()
  const [first, second] = [watched.middleware({ limiter }), watched.middleware({ limiter })]
  const request = {}
  first(request)
  second(request)
  first({})
  assert.deepEqual(watched.codes(), ['SLUICEGATE_COUNTED_TWICE'])
})

test('two keys of one request in one limiter, or two requests with one key, are no fault', () => {
  const watched = new Watched()
  const limiter = limited()
  const [byUser, byAddress] = [watched.middleware({ limiter, key: () => 'user' }), watched.middleware({ limiter })]
  const request = {}
  byUser(request)
  byAddress(request)
  byUser({}, {})
  assert.deepEqual(watched.codes(), [])
})

const RECEIVED: PlainRequest = { isReceived: true }

test('two limits made for a request each that count the same key are warned about, once', () => {
  const watched = new Watched()
  watched.middleware({ policy: POLICY })({ ...RECEIVED })
  assert.deepEqual(watched.codes(), [])
  for (let i = 0; i < 60; i++) watched.middleware({ policy: POLICY })({ ...RECEIVED })
  assert.deepEqual(watched.codes(), ['SLUICEGATE_LIMITER_PER_REQUEST'])
  assert.match(watched.seen[0] ?? '', /: 2 limits of the policy 'p'/)
})

test('limits made for a request each are warned about, once, also where each counts another key', () => {
  const watched = new Watched()
  const ask = (i: number): void => watched.middleware({ policy: POLICY, key: () => `client ${i}` })({ ...RECEIVED })
  for (let i = 0; i < 29; i++) ask(i)
  assert.deepEqual(watched.codes(), [])
  for (let i = 29; i < 90; i++) ask(i)
  assert.deepEqual(watched.codes(), ['SLUICEGATE_LIMITER_PER_REQUEST'])
})

test('limiters made in handlers of a server are warned about at the second, with the place, and others made at one place are not', async () => {
  const seen: string[] = []
  const onWarning = ({ message }: Error): void => void seen.push(message)
  process.on('warning', onWarning)
  const policy = tokenBucket({ name: 'in a handler', limit: 1, window: '1m' })
  const taken = (): boolean => createLimiter(policy).take('ada').allowed
  for (let i = 0; i < 5; i++) taken()
  const server = await listening(createServer((_request, response) => response.end(String(taken()))))
  for (let i = 0; i < 3; i++) {
    assert.equal(await (await fetch(`http://127.0.0.1:${server.port}/`)).text(), 'true')
    assert.equal(seen.length, i > 0 ? 1 : 0)
  }
  await server.close()
  process.off('warning', onWarning)
  assert.match(
    seen[0] ?? '',
    /^2 limiters of the policy 'in a handler' .*misuse-watch\.alone\.test\.js:\d+:\d+.*: make one, outside the handler/,
  )
})

test('a window below a second that is a number is warned about, once, and one with a unit is not', async () => {
  const seen: string[] = []
  const onWarning = ({ message }: Error): void => void seen.push(message)
  process.on('warning', onWarning)
  for (let i = 0; i < 3; i++) createLimiter(tokenBucket({ limit: 1, window: 61 }))
  for (const window of ['62ms', 60_000] as const) createLimiter(tokenBucket({ limit: 1, window }))
  await new Promise(setImmediate)
  process.off('warning', onWarning)
  assert.deepEqual(
    seen.map((message) => message.slice(0, message.indexOf(':', 8))),
    ['window: 61 is 61 ms, as a number is milliseconds'],
  )
})

test('limits of apps that are made one after another, as by tests, are no fault', async () => {
  const watched = new Watched()
  const served = watched.middleware({ policy: POLICY })
  for (let i = 0; i < 100; i++) {
    // The request comes over a socket: later than the limit was made.
    const app = watched.middleware({ policy: POLICY })
    await undefined
    app({ ...RECEIVED }, { ...RECEIVED })
    // It is made by the test itself.
    watched.middleware({ policy: POLICY })({})
    served({ ...RECEIVED })
  }
  assert.deepEqual(watched.codes(), [])
})

test('limits that are made while a request is decided, and kept for others, are no fault', () => {
  const watched = new Watched()
  let clients = 0
  const tenants = Array.from({ length: 20 }, () => {
    const middleware = watched.middleware({ policy: POLICY, key: () => `client ${clients++}` })
    middleware({ ...RECEIVED })
    return middleware
  })
  tenants[0]?.({ ...RECEIVED })
  for (let i = 0; i < 100; i++) watched.middleware({ policy: POLICY })({ ...RECEIVED })
  assert.deepEqual(watched.codes(), [])
})

test('limits of different policies made for requests are no fault', () => {
  const watched = new Watched()
  for (let i = 1; i < 50; i++) watched.middleware({ policy: tokenBucket({ limit: i, window: '1s' }) })({ ...RECEIVED })
  assert.deepEqual(watched.codes(), [])
})

test('each subject of a warning is warned of once, up to a maximum', () => {
  const seen: string[] = []
  const warn = warnOnce((_, message) => seen.push(message.slice(0, message.indexOf(';'))))
  for (let i = 0; i < 100; i++) {
    warn('SLUICEGATE_COUNTED_TWICE', 'a', 'a')
    warn('SLUICEGATE_COUNTED_TWICE', 'b', 'b')
    warn('SLUICEGATE_PROXY_MISSING', String(i), String(i))
  }
  assert.deepEqual(seen.slice(0, 3), ['a', 'b', '0'])
  assert.equal(seen.length, 12)
})

test('a fault is warned of once in a process, through whichever entry it is found', async () => {
  const seen: string[] = []
  const onWarning = ({ message }: Error): void => void seen.push(message)
  process.on('warning', onWarning)
  const app = express()
  app.get('/own', (request, response, next) =>
    limitExpress(fixedWindow({ limit: 9, window: 60_000, name: 'each' }))(request, response, next),
  )
  app.get('/stand-in', (request, response, next) => standIn({ limit: 9, windowMs: 60_000, identifier: 'each' })(request, response, next))
  app.use((_request, response) => void response.end('ok'))
  const server = await listening(createServer(app))
  for (let i = 0; i < 40; i++) {
    for (const path of ['own', 'stand-in']) await (await fetch(`http://127.0.0.1:${server.port}/${path}`)).text()
  }
  await server.close()
  process.off('warning', onWarning)
  assert.deepEqual(
    seen.map((message) => /^\d+ limits of the policy 'each'/.test(message)),
    [true],
  )
})

test('a warning is one of the process, with its code', async () => {
  const warned = new Promise<Error & { code?: string }>((resolve) => process.once('warning', resolve))
  const middleware = new Middleware<PlainRequest>({ limiter: limited() })
  middleware.handle(plainFacts(FORWARDED), FORWARDED)
  const { name, code } = await warned
  assert.deepEqual([name, code], ['SluicegateWarning', EXPECTED])
})
