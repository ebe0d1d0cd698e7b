import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { test } from 'node:test'
import { FakeNet, refusal, settled } from 'sluicegate-testkit/outbound/fake-net.js'
import { type Answering, withLimitedAgent } from 'sluicegate-testkit/outbound/limited-server.js'
import { turns, turnsUntil } from 'sluicegate-testkit/turns.js'
import { type Dispatcher, MockAgent, request } from 'undici'
import { createLimiter } from '../create-limiter.js'
import { gcra, tokenBucket } from '../policy/single-policy.js'
import { type Clock, manualClock } from '../time/clock.js'
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

test('a refusal with an endless body is broken off', { timeout: 20_000 }, async () => {
  let endless: ServerResponse | undefined
  const answer: Answering = (_, response) => {
    if (endless !== undefined) return void response.end('ok')
    endless = response.writeHead(429, { 'Retry-After': '0' })
    const more = (): void => {
      while (!response.destroyed && response.write(Buffer.alloc(20_000))) {}
    }
    response.on('drain', more)
    more()
  }
  await withLimitedAgent(answer, { clock: manualClock() }, async ({ server, dispatcher }) => {
    const { statusCode, body } = await request(server.url, { dispatcher })
    assert.deepEqual([statusCode, await body.text()], [200, 'ok'])
    await turnsUntil(() => endless?.destroyed === true)
  })
})

test('a refusal whose body drips delays no request, and keeps its place for at most a second', { timeout: 20_000 }, async () => {
  for (const concurrency of [1, 2]) {
    const clock = manualClock()
    let dripping: ServerResponse | undefined
    const answer: Answering = (_, response) => {
      if (dripping !== undefined) return void response.end('ok')
      dripping = response.writeHead(429, { 'Retry-After': '0' })
      dripping.write('a drop')
    }
    let retries = 0
    await withLimitedAgent(answer, { clock, concurrency, onRetry: () => retries++ }, async ({ server, dispatcher, stats }) => {
      const answered = request(server.url, { dispatcher })
      await turnsUntil(() => retries === 1)
      if (concurrency === 1) {
        clock.advance(999)
        await turns(20)
        assert.equal(stats().sent, 1)
        clock.advance(1)
      }
      const { statusCode, body } = await answered
      assert.deepEqual([statusCode, await body.text()], [200, 'ok'])
      clock.advance(1_000)
      await turnsUntil(() => dripping?.destroyed === true)
      assert.equal(stats().sent, 2)
    })
  }
})

test('a refusal that is read to its end keeps its connection', async () => {
  const clock = manualClock()
  const sockets = new Set<Socket>()
  let isOver = false
  const answer: Answering = ({ socket }, response) => {
    const isFirst = sockets.size === 0
    sockets.add(socket)
    response.on('close', () => {
      isOver = true
    })
    if (isFirst) response.writeHead(429, { 'Retry-After': '1' }).end('too many')
    else response.end('ok')
  }
  let retries = 0
  await withLimitedAgent(answer, { clock, onRetry: () => retries++ }, async ({ server, dispatcher }) => {
    const answered = request(server.url, { dispatcher })
    await turnsUntil(() => retries === 1 && isOver)
    await turns(20)
    clock.advance(1_000)
    const { statusCode, body } = await answered
    assert.deepEqual([statusCode, await body.text()], [200, 'ok'])
    assert.deepEqual([server.asked.length, sockets.size], [2, 1])
  })
})

test('a hook that throws fails its request, without a retry', async () => {
  const refusing: Answering = (_, response) => void response.writeHead(429, { 'Retry-After': '0' }).end('too many')
  for (const [hook, sent] of [
    ['onWait', 0],
    ['onThrottle', 1],
    ['onRetry', 1],
  ] as const) {
    const asked: unknown[] = []
    const options: OutboundOptions = {
      limiter: createLimiter(tokenBucket({ limit: 9, window: '1h' })),
      retry: (_, { error }) => asked.push(error) > 0,
      [hook]: () => {
        throw new Error(hook)
      },
    }
    await withLimitedAgent(refusing, options, async ({ server, dispatcher, stats }) => {
      await assert.rejects(request(server.url, { dispatcher }), new RegExp(hook))
      await turnsUntil(() => stats().inFlight === 0 && stats().waiting === 0)
      assert.equal(server.asked.length, sent, hook)
      assert.deepEqual(asked, hook === 'onRetry' ? [undefined] : [], hook)
    })
  }
})
