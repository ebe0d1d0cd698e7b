import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createLimiter, type Limiter, manualClock, tokenBucket } from '../index.js'
import { address } from '../keys/address.js'
import { compose } from '../keys/compose.js'
import { method } from '../keys/method.js'
import { type PlainRequest, plainFacts } from '../testing/plain-request.js'
import { Gatekeeper } from './gatekeeper.js'
import type { GatekeeperOptions } from './gatekeeper-options.js'
import { MisuseWatch } from './misuse-watch.js'
import type { EdgeWarning } from './warning.js'

const POLICY = tokenBucket({ name: 'p', limit: 1_000_000, window: '1s' })
const FORWARDED: PlainRequest = { headers: { 'x-forwarded-for': '198.51.100.1' } }

class Watched {
  readonly told: string[] = []
  readonly watch = new MisuseWatch((code, message) => this.told.push(`${code}: ${message}`))

  keeper(options: GatekeeperOptions<PlainRequest>): (...requests: PlainRequest[]) => void {
    const keeper = new Gatekeeper<PlainRequest>(options, { watch: this.watch })
    return (...requests) => {
      for (const request of requests) keeper.decide(plainFacts(request), request)
    }
  }

  codes(): (string | undefined)[] {
    return this.told.map((message) => message.split(':')[0])
  }
}

function times(n: number, request: PlainRequest): PlainRequest[] {
  return Array.from({ length: n }, () => ({ ...request }))
}

function limited(): Limiter {
  return createLimiter(POLICY, { clock: manualClock() })
}

const EXPECTED: EdgeWarning = 'SLUICEGATE_PROXY_UNTRUSTED'

test('headers of a proxy while no hop is trusted are warned about, once, with what to do and where to read on', () => {
  const watched = new Watched()
  watched.keeper({ limiter: limited() })(...times(5, {}), ...times(20, FORWARDED))
  watched.keeper({ limiter: limited(), key: compose(address(), method()) })(...times(20, FORWARDED))
  assert.deepEqual(watched.codes(), [EXPECTED])
  assert.match(
    watched.told[0] ?? '',
    /address\(\{ trustedHops: 1 \}\); see node_modules\/sluicegate\/docs\/warnings\.md#sluicegate_proxy_untrusted$/,
  )
})

test('a trusted proxy that never shows is warned about after a hundred requests without it', () => {
  const watched = new Watched()
  const ask = watched.keeper({ limiter: limited(), key: address({ trustedHops: 1 }) })
  ask(...times(99, {}))
  assert.deepEqual(watched.codes(), [])
  ask({})
  assert.deepEqual(watched.codes(), ['SLUICEGATE_PROXY_MISSING'])
})

test('checks of health past the proxy are no fault', () => {
  const watched = new Watched()
  watched.keeper({ limiter: limited(), key: address({ trustedHops: 1 }) })(...times(50, {}), FORWARDED, ...times(500, {}))
  watched.keeper({ limiter: limited(), key: address({ trustedNetworks: ['loopback'] }) })(FORWARDED, ...times(500, {}))
  assert.deepEqual(watched.codes(), [])
})

test('keys that are no addresses say nothing about proxies', () => {
  const watched = new Watched()
  watched.keeper({ limiter: limited(), key: () => 'all' })(...times(200, FORWARDED))
  watched.keeper({ limiter: limited(), key: method() })(...times(200, FORWARDED))
  assert.deepEqual(watched.codes(), [])
})

test('the same limiter asked twice about one request and key is warned about, also through two gatekeepers', () => {
  const watched = new Watched()
  const limiter = limited()
  const [first, second] = [watched.keeper({ limiter }), watched.keeper({ limiter })]
  const request = {}
  first(request)
  second(request)
  first({})
  assert.deepEqual(watched.codes(), ['SLUICEGATE_COUNTED_TWICE'])
})

test('two keys of one request in one limiter, or two requests with one key, are no fault', () => {
  const watched = new Watched()
  const limiter = limited()
  const [byUser, byAddress] = [watched.keeper({ limiter, key: () => 'user' }), watched.keeper({ limiter })]
  const request = {}
  byUser(request)
  byAddress(request)
  byUser({}, {})
  assert.deepEqual(watched.codes(), [])
})

test('a limiter made for each request is warned about, and those made before the first one are not', () => {
  const watched = new Watched()
  for (let i = 0; i < 50; i++) watched.keeper({ policy: POLICY })
  assert.deepEqual(watched.codes(), [])
  for (let i = 0; i < 9; i++) watched.keeper({ policy: POLICY })({})
  assert.deepEqual(watched.codes(), [])
  for (let i = 0; i < 9; i++) watched.keeper({ policy: POLICY })({})
  assert.deepEqual(watched.codes(), ['SLUICEGATE_LIMITER_PER_REQUEST'])
})

test('limits of different policies made while requests are served are no fault', () => {
  const watched = new Watched()
  for (let i = 1; i < 50; i++) watched.keeper({ policy: tokenBucket({ limit: i, window: '1s' }) })({})
  assert.deepEqual(watched.codes(), [])
})

test('a warning is one of the process, with its code', async () => {
  const warned = new Promise<Error & { code?: string }>((resolve) => process.once('warning', resolve))
  const keeper = new Gatekeeper<PlainRequest>({ limiter: limited() })
  keeper.decide(plainFacts(FORWARDED), FORWARDED)
  const { name, code } = await warned
  assert.deepEqual([name, code], ['SluicegateWarning', EXPECTED])
})
