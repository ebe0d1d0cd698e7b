import assert from 'node:assert/strict'
import { test } from 'node:test'
import { FakeNet, refusal, settled } from 'sluicegate-testkit/outbound/fake-net.js'
import { type Answering, withLimitedAgent } from 'sluicegate-testkit/outbound/limited-server.js'
import { turnsUntil } from 'sluicegate-testkit/turns.js'
import { type Dispatcher, MockAgent, request } from 'undici'
import { createLimiter } from '../create-limiter.js'
import { gcra, tokenBucket } from '../policy/single-policy.js'
import type { Clock } from '../time/clock.js'
import { limited } from './limited.js'
import { limitedFetch } from './limited-fetch.js'
import type { OutboundOptions } from './outbound-options.js'

const later = async <Value>(value: Value): Promise<Value> => {
  await settled()
  return value
}
const failing = async (): Promise<never> => {
  await settled()
  throw new Error('hook')
}

test('the result of an async retry decides', async () => {
  for (const [word, times] of [
    [true, 2],
    [false, 1],
  ] as const) {
    const net = new FakeNet((_, number) => (number === 1 ? refusal(503, '1') : new Response('ok')))
    const call = limitedFetch(net.fetch, { clock: net.clock, jitter: 0, retry: () => later(word) })('http://a/', { method: 'POST' })
    await net.pass(3_000, 50)
    assert.deepEqual([(await call).status, net.times.length], [word ? 200 : 503, times])
  }
})

test('a retry that returns neither true nor false, and an invalid priority, are errors', async () => {
  const net = new FakeNet(() => refusal(503, '1'))
  const mistakes: [string, unknown][] = [
    ['retry', () => 'no'],
    ['priority', () => 'high'],
    ['priority', failing],
  ]
  for (const [option, fn] of mistakes) {
    const polite = limitedFetch(net.fetch, { clock: net.clock, [option]: fn } as OutboundOptions)
    await assert.rejects(polite('http://a/', { method: 'POST' }), { name: 'PolicyError', code: 'OPTION_INVALID', option })
    assert.deepEqual([polite.stats().waiting, polite.stats().inFlight], [0, 0])
  }
})

test('a hook that rejects fails its own request, which sends nothing any more', async () => {
  for (const [hook, sent] of [
    ['onWait', 0],
    ['onThrottle', 1],
    ['onRetry', 1],
  ] as const) {
    const net = new FakeNet(() => refusal(429, '1'))
    const limiter = createLimiter(tokenBucket({ limit: 5, window: '1h' }), { clock: net.clock })
    const polite = limitedFetch(net.fetch, { clock: net.clock, limiter, [hook]: failing })
    await assert.rejects(polite('http://a/'), /hook/)
    await net.pass(3_000, 50)
    assert.deepEqual([net.times.length, limiter.peek('a').remaining, polite.stats().inFlight], [sent, 5 - sent, 0], hook)
  }
})

test('it is the same for undici', async () => {
  const answer: Answering = (incoming, response) => {
    if (incoming.url === '/broken') return void incoming.socket.destroy()
    response.writeHead(429, { 'Retry-After': '0' }).end('too many')
  }
  for (const [word, times] of [
    [true, 2],
    [false, 1],
  ] as const) {
    await withLimitedAgent(answer, { attempts: 2, retry: () => later(word) }, async ({ server, dispatcher, stats }) => {
      const { statusCode, body } = await request(server.url, { dispatcher, method: 'POST', body: 'x' })
      assert.deepEqual([statusCode, await body.text(), server.asked.length], [429, 'too many', times])
      await assert.rejects(request(`${server.url}/broken`, { dispatcher }), { code: 'UND_ERR_SOCKET' })
      assert.equal(server.asked.length, 2 * times)
      assert.equal(stats().inFlight, 0)
    })
  }
  for (const hook of ['onWait', 'onThrottle', 'onRetry'] as const) {
    await withLimitedAgent(answer, { [hook]: failing }, async ({ server, dispatcher, stats }) => {
      await assert.rejects(request(server.url, { dispatcher }), /hook/)
      await turnsUntil(() => stats().inFlight === 0 && stats().waiting === 0)
    })
  }
})

test('a request aborted during a hook rejects at once', async () => {
  const refusing: Answering = (_, response) => void response.writeHead(429, { 'Retry-After': '0' }).end('too many')
  for (const word of [true, false]) {
    let decide: ((word: boolean) => void) | undefined
    const retry = (): Promise<boolean> => new Promise((resolve) => (decide = resolve))
    await withLimitedAgent(refusing, { retry }, async ({ server, dispatcher, stats }) => {
      const client = new AbortController()
      const rejected = assert.rejects(request(server.url, { dispatcher, signal: client.signal }), /gone/)
      await turnsUntil(() => decide !== undefined)
      client.abort(new Error('gone'))
      await rejected
      decide?.(word)
      await settled()
      assert.deepEqual([server.asked.length, stats().inFlight, stats().waiting], [1, 0, 0])
    })
  }
})

test('what comes before it is decided whose it is is kept, where a dispatcher does not pause', async () => {
  const agent = new MockAgent()
  agent.disableNetConnect()
  agent.get('http://a').intercept({ path: '/' }).reply(429, 'too many')
  const dispatcher = agent.compose(limited({ retry: () => later(false) })) as Dispatcher
  const { statusCode, body } = await request('http://a/', { dispatcher })
  assert.deepEqual([statusCode, await body.text()], [429, 'too many'])
})

test('what a handler of undici throws comes back to it as an error, as without limits', async () => {
  const ok: Answering = (_, response) => void response.end('ok')
  await withLimitedAgent(ok, { concurrency: 1 }, async ({ server, dispatcher, stats }) => {
    for (const where of ['onRequestStart', 'onResponseStart', 'onResponseEnd'] as const) {
      const error = await new Promise((resolve) => {
        const handler: Dispatcher.DispatchHandler = {
          onRequestStart: () => undefined,
          onResponseStart: () => undefined,
          onResponseData: () => undefined,
          onResponseEnd: () => undefined,
          onResponseError: (_, thrown) => resolve(thrown),
          [where]: () => {
            throw new Error(where)
          },
        }
        dispatcher.dispatch({ origin: server.url, path: '/', method: 'GET' }, handler)
      })
      assert.equal((error as Error).message, where)
      await turnsUntil(() => stats().inFlight === 0)
    }
  })
})

test('a clock that fails rejects all waiting requests, and ends nothing else', async () => {
  const net = new FakeNet((_, number) => (number === 1 ? refusal(429, '5') : new Response('ok')))
  let isBroken = false
  const clock: Clock = {
    nowMs: () => {
      if (isBroken) throw new Error('clock')
      return net.clock.nowMs()
    },
    after: (ms, fn) => net.clock.after(ms, fn),
  }
  const polite = limitedFetch(net.fetch, { clock, attempts: 1, policy: gcra({ limit: 1000, window: '1s' }) })
  await polite('http://a/')
  const calls = [1, 2, 3].map(() => assert.rejects(polite('http://a/'), /clock/))
  await net.pass(100, 10)
  isBroken = true
  await net.pass(10_000, 100)
  await Promise.all(calls)
})
