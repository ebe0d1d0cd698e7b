import assert from 'node:assert/strict'
import { test } from 'node:test'
import { FakeNet, refusal, settled } from 'sluicegate-testkit/outbound/fake-net.js'
import { createLimiter } from '../create-limiter.js'
import { gcra, tokenBucket } from '../policy/single-policy.js'
import { limitedFetch } from './limited-fetch.js'
import { OutboundError } from './outbound-error.js'
import type { OutboundLimiter } from './outbound-options.js'

const EVEN = gcra({ limit: 10, window: '1s', burst: 1 })

test('requests to one host are spaced by the policy, those to another host are independent', async () => {
  const net = new FakeNet()
  const polite = limitedFetch(net.fetch, { policy: EVEN, clock: net.clock })
  const calls = ['http://a/1', 'http://a/2', 'http://b/1', 'http://a/3', 'http://a:8080/1'].map((url) => polite(url))
  await net.pass(250)
  await Promise.all(calls)
  const at = Object.fromEntries(net.arrivals.map(({ url, atMs }) => [url, atMs]))
  assert.deepEqual(at, { 'http://a/1': 0, 'http://b/1': 0, 'http://a:8080/1': 0, 'http://a/2': 100, 'http://a/3': 200 })
})

test('the arguments reach fetch as they are, but that redirects come back, and its response comes back as it is', async () => {
  const answer = new Response('ok')
  const seen: unknown[] = []
  const polite = limitedFetch((...args: [input: URL, init?: RequestInit]) => {
    seen.push(...args)
    return Promise.resolve(answer)
  })
  const url = new URL('http://a/')
  const init = { method: 'POST', body: 'x' }
  assert.equal(await polite(url, init), answer)
  assert.deepEqual(seen, [url, { ...init, redirect: 'manual' }])
})

test('a thousand requests are sent in the order of the calls', async () => {
  const net = new FakeNet()
  const polite = limitedFetch(net.fetch, { policy: tokenBucket({ limit: 100, window: '1s', burst: 7 }), clock: net.clock })
  const urls = Array.from({ length: 1000 }, (_, i) => `http://a/${i}`)
  const calls = urls.map((url) => polite(url))
  await net.pass(10_000, 10)
  await Promise.all(calls)
  assert.deepEqual(net.urls, urls)
})

test('a higher priority goes first, also when it comes last; of equals the first that came', async () => {
  const net = new FakeNet()
  const polite = limitedFetch(net.fetch, { policy: EVEN, clock: net.clock, priority: ({ url }) => Number(url.searchParams.get('p')) })
  const calls = ['/0?p=0', '/1?p=0', '/2?p=1', '/3?p=2', '/4?p=1'].map((path) => polite(`http://a${path}`))
  await net.pass(250)
  calls.push(polite('http://a/5?p=9'))
  await net.pass(500)
  await Promise.all(calls)
  assert.deepEqual(
    net.urls.map((url) => url.at(9)),
    ['3', '2', '4', '5', '0', '1'],
  )
})

test('fetch has its own word for priority', async () => {
  const net = new FakeNet()
  const polite = limitedFetch(net.fetch, { policy: EVEN, clock: net.clock })
  const calls = ['low', 'low', 'auto', 'high'].map((priority) => polite(`http://a/${priority}`, { priority } as RequestInit))
  await net.pass(400)
  await Promise.all(calls)
  assert.deepEqual(net.urls, ['http://a/high', 'http://a/auto', 'http://a/low', 'http://a/low'])
})

test('a request aborted while it waits rejects with the reason of the signal, and leaves no spent token', async () => {
  const net = new FakeNet()
  const limiter = createLimiter(EVEN, { clock: net.clock })
  const polite = limitedFetch(net.fetch, { limiter, clock: net.clock })
  await polite('http://a/1')
  const client = new AbortController()
  const waiting = polite('http://a/2', { signal: client.signal })
  const rejected = assert.rejects(waiting, /gone/)
  await net.pass(50)
  client.abort(new Error('gone'))
  await rejected
  await settled()
  assert.equal(limiter.peek('a').retryAfterMs, 50)
  assert.deepEqual(polite.statsOf('a'), { waiting: 0, inFlight: 0, perSecond: Number.POSITIVE_INFINITY, pauseMs: 0, remaining: undefined })
})

test('of those that abort among others the token goes to the next', async () => {
  const net = new FakeNet()
  const polite = limitedFetch(net.fetch, { policy: EVEN, clock: net.clock })
  await polite('http://a/1')
  const client = new AbortController()
  const gone = Array.from({ length: 5 }, () => polite('http://a/gone', { signal: client.signal }))
  const last = polite('http://a/last')
  await net.pass(50)
  client.abort()
  assert.equal((await Promise.allSettled(gone)).filter(({ status }) => status === 'rejected').length, 5)
  await net.pass(50)
  await last
  assert.deepEqual(
    net.arrivals.map(({ url, atMs }) => [url, atMs]),
    [
      ['http://a/1', 0],
      ['http://a/last', 100],
    ],
  )
})

test('a signal that was aborted before sends nothing and takes nothing', async () => {
  const net = new FakeNet()
  const limiter = createLimiter(EVEN, { clock: net.clock })
  const polite = limitedFetch(net.fetch, { limiter, clock: net.clock })
  await assert.rejects(polite('http://a/', { signal: AbortSignal.abort(new Error('early')) }), /early/)
  await assert.rejects(polite(new Request('http://a/', { signal: AbortSignal.abort(new Error('early')) })), /early/)
  assert.deepEqual([net.arrivals.length, limiter.peek('a').remaining], [0, 1])
})

test('a turn that does not come within maxWait rejects with a code, the key and the host', async () => {
  const net = new FakeNet()
  const polite = limitedFetch(net.fetch, { policy: gcra({ limit: 1, window: '10s' }), maxWait: 300, clock: net.clock })
  await polite('http://a:81/')
  const waiting = polite('http://a:81/')
  const rejected = assert.rejects(waiting, (error: OutboundError) => {
    assert.ok(error instanceof OutboundError)
    assert.deepEqual([error.code, error.host, error.key, error.name], ['WAIT_TOO_LONG', 'a:81', 'a:81', 'OutboundError'])
    return true
  })
  await net.pass(300)
  await rejected
  assert.equal(polite.stats().waiting, 0)
})

test('where a pause is known to outlast maxWait, waiting and new requests are rejected at once', async () => {
  const net = new FakeNet((_, number) => (number === 1 ? refusal(429, '60') : new Response('ok')), 10)
  const polite = limitedFetch(net.fetch, { maxWait: 5_000, attempts: 1, jitter: 0, concurrency: 1, clock: net.clock })
  const first = polite('http://a/')
  const tooLate = [polite('http://a/'), polite('http://a/')].map((call) =>
    assert.rejects(call, { code: 'WAIT_TOO_LONG', retryAfterMs: 60_000 }),
  )
  await net.pass(10)
  assert.equal((await first).status, 429)
  await (await first).body?.cancel()
  await Promise.all(tooLate)
  await assert.rejects(polite('http://a/'), { code: 'WAIT_TOO_LONG' })
  assert.equal(net.arrivals.length, 1)
})

test('a pause longer than maxPause is kept by sending nothing, and no request waits for it', async () => {
  const net = new FakeNet(() => refusal(503, '3600'), 10)
  const polite = limitedFetch(net.fetch, { jitter: 0, clock: net.clock, concurrency: 1 })
  const calls = [polite('http://a/'), polite('http://a/')]
  const paused = assert.rejects(calls[1] as Promise<Response>, { code: 'PAUSED', host: 'a', retryAfterMs: 3_600_000 })
  await net.pass(10)
  assert.equal((await calls[0])?.status, 503)
  await paused
  await assert.rejects(polite('http://a/'), { code: 'PAUSED' })
  await net.pass(3_400_000, 100_000)
  const again = polite('http://a/')
  await net.pass(200_010, 10_000)
  assert.equal((await again).status, 503)
  assert.deepEqual(net.times, [0, 3_600_010])
})

test('with maxWait 0 a request goes at once or not at all', async () => {
  const net = new FakeNet()
  const polite = limitedFetch(net.fetch, { policy: tokenBucket({ limit: 2, window: '1h' }), maxWait: 0, clock: net.clock })
  const calls = Promise.allSettled([1, 2, 3].map((i) => polite(`http://a/${i}`)))
  await net.pass(1)
  assert.deepEqual(
    (await calls).map((call) => (call.status === 'rejected' ? call.reason.code : call.value.status)),
    [200, 200, 'WAIT_TOO_LONG'],
  )
})

test('a limiter that answers by promises, as those of fleets do, is waited for', async () => {
  const net = new FakeNet()
  const inner = createLimiter(EVEN, { clock: net.clock })
  const limiter: OutboundLimiter = {
    policy: inner.policy,
    wait: async (key, options) => inner.wait(key, options),
    refund: async (key, tokens) => inner.refund(key, tokens),
    penalize: async (key, tokens) => inner.penalize(key, tokens),
  }
  const polite = limitedFetch(net.fetch, { limiter, clock: net.clock })
  const client = new AbortController()
  const calls = [polite('http://a/1'), polite('http://a/2'), polite('http://a/3', { signal: client.signal })]
  const rejected = assert.rejects(calls[2] as Promise<Response>, { name: 'AbortError' })
  await net.pass(150)
  client.abort()
  await rejected
  await Promise.all(calls.slice(0, 2))
  await settled()
  assert.equal(inner.peek('a').retryAfterMs, 50)
})

test('no more than maxWaiting wait for a key, and close() ends their wait', async () => {
  const net = new FakeNet()
  const polite = limitedFetch(net.fetch, { policy: gcra({ limit: 1, window: '1h' }), maxWaiting: 2, clock: net.clock })
  await polite('http://a/')
  const waiting = [polite('http://a/'), polite('http://a/')].map((call) => assert.rejects(call, { code: 'CLOSED' }))
  await settled()
  await assert.rejects(polite('http://a/'), { code: 'QUEUE_FULL' })
  polite.close()
  await Promise.all(waiting)
  await assert.rejects(polite('http://a/'), { code: 'CLOSED' })
})

test('a limiter that never lets a key pass, or is closed, rejects requests', async () => {
  const net = new FakeNet()
  const limiter = createLimiter(EVEN, { clock: net.clock, deny: ['a'] })
  const polite = limitedFetch(net.fetch, { limiter, clock: net.clock })
  await assert.rejects(polite('http://a/'), { code: 'DENIED', retryAfterMs: Number.POSITIVE_INFINITY })
  limiter.close()
  await assert.rejects(polite('http://b/'), { name: 'StoreError', code: 'CLOSED' })
  assert.equal(net.arrivals.length, 0)
})

test('an abort in flight rejects also where fetch ignores its signal, frees the place, and drops the late response', async () => {
  const answers: ((response: Response) => void)[] = []
  const deaf = limitedFetch((_input: string, _init?: RequestInit) => new Promise<Response>((resolve) => answers.push(resolve)), {
    concurrency: 1,
  })
  const controller = new AbortController()
  const first = deaf('http://a/', { signal: controller.signal })
  const second = deaf('http://a/')
  await settled()
  controller.abort(new Error('gone'))
  await assert.rejects(first, /gone/)
  await settled()
  assert.equal(answers.length, 2)
  let isDropped = false
  const cancel = (): void => {
    isDropped = true
  }
  answers[0]?.(new Response(new ReadableStream({ cancel })))
  answers[1]?.(new Response('second'))
  assert.equal(await (await second).text(), 'second')
  assert.equal(isDropped, true)
})
