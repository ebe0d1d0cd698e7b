import assert from 'node:assert/strict'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import { type Answering, LimitedServer, withLimitedAgent } from 'sluicegate-testkit/outbound/limited-server.js'
import { turns, turnsUntil } from 'sluicegate-testkit/turns.js'
import { Agent, Client, type Dispatcher, interceptors, request, fetch as undiciFetch } from 'undici'
import { createLimiter } from '../create-limiter.js'
import { gcra, tokenBucket } from '../policy/single-policy.js'
import { limited } from './limited.js'
import type { OutboundOptions } from './outbound-options.js'

const ok: Answering = (_, response) => void response.end('ok')

test('requests of a composed dispatcher wait for their turn', async () => {
  await withLimitedAgent(ok, { policy: gcra({ limit: 50, window: '1s', burst: 1 }) }, async ({ server, dispatcher, stats }) => {
    const startMs = performance.now()
    const answers = await Promise.all([1, 2, 3, 4, 5].map((i) => request(`${server.url}/${i}`, { dispatcher })))
    for (const { statusCode, body } of answers) assert.deepEqual([statusCode, await body.text()], [200, 'ok'])
    assert.ok(performance.now() - startMs >= 79)
    assert.deepEqual([...server.asked].sort(), ['GET /1', 'GET /2', 'GET /3', 'GET /4', 'GET /5'])
    assert.equal(stats().sent, 5)
  })
})

test('it is the same for fetch, of undici and of Node.js', async () => {
  await withLimitedAgent(ok, { policy: tokenBucket({ limit: 9, window: '1h' }) }, async ({ server, dispatcher, statsOf }) => {
    const answer = await undiciFetch(server.url, { dispatcher })
    assert.equal(await answer.text(), 'ok')
    const own = await fetch(server.url, { dispatcher } as unknown as RequestInit)
    assert.equal(await own.text(), 'ok')
    assert.deepEqual(statsOf(new URL(server.url).host)?.inFlight, 0)
    assert.equal(server.asked.length, 2)
  })
})

test('a refusal is kept from the caller, and sent again after Retry-After', async () => {
  const answer: Answering = (_, response) => {
    if (server?.asked.length === 1) response.writeHead(429, { 'Retry-After': '1' }).end('too many')
    else response.end('ok')
  }
  let server: LimitedServer | undefined
  await withLimitedAgent(answer, {}, async (given) => {
    server = given.server
    const startMs = performance.now()
    const { statusCode, body } = await request(server.url, { dispatcher: given.dispatcher, method: 'POST', body: 'order' })
    assert.deepEqual([statusCode, await body.text()], [200, 'ok'])
    assert.ok(performance.now() - startMs >= 995)
    assert.equal(given.stats().retried, 1)
  })
})

test('an invalid priority counts as none, and leaves the order of others', async () => {
  const priority: OutboundOptions['priority'] = ({ url }) => Number(url.searchParams.get('p'))
  await withLimitedAgent(ok, { concurrency: 1, priority }, async ({ server, dispatcher }) => {
    const calls = ['0', '1', 'x', '3', 'y', '2'].map(async (p) => (await request(`${server.url}/?p=${p}`, { dispatcher })).body.text())
    await Promise.all(calls)
    assert.deepEqual(
      server.asked.map((asked) => asked.at(-1)),
      ['0', '3', '2', '1', 'x', 'y'],
    )
  })
})

test('close() ends all waits, and no request waits for a pause longer than maxPause', async () => {
  const refusing: Answering = (_, response) => void response.writeHead(503, { 'Retry-After': '3600' }).end()
  await withLimitedAgent(refusing, { maxPause: 1_000 }, async ({ server, dispatcher }) => {
    assert.equal((await request(server.url, { dispatcher })).statusCode, 503)
    await assert.rejects(request(server.url, { dispatcher }), { name: 'OutboundError', code: 'PAUSED' })
  })
  const server = await LimitedServer.answering(ok)
  const agent = new Agent()
  const interceptor = limited({ policy: gcra({ limit: 1, window: '1h' }) })
  const dispatcher = agent.compose(interceptor)
  await (await request(server.url, { dispatcher })).body.text()
  const waiting = assert.rejects(request(server.url, { dispatcher }), { code: 'CLOSED' })
  interceptor.close()
  await waiting
  await assert.rejects(request(server.url, { dispatcher }), { code: 'CLOSED' })
  await agent.destroy()
  await server.stop()
})

test('a tunnel counts for where it leads', async () => {
  const proxy = createServer().on('connect', (_, socket) => socket.end('HTTP/1.1 200 Connected\r\n\r\n'))
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve))
  const client = new Client(`http://127.0.0.1:${(proxy.address() as AddressInfo).port}`)
  const interceptor = limited({ concurrency: 1 })
  // It is composed to a client still, which knows its origin.
  const composed = client.compose(interceptor) as Dispatcher as Client
  try {
    for (let i = 0; i < 2; i++) {
      const { statusCode, socket } = await composed.connect({ path: 'example.com:8443' })
      socket.destroy()
      assert.equal(statusCode, 200)
    }
    assert.deepEqual([interceptor.stats().sent, interceptor.statsOf('example.com:8443')?.inFlight], [2, 0])
  } finally {
    await client.destroy()
    proxy.close()
  }
})

test('what must not be sent twice is not: streams, and what a broken connection may have done', async () => {
  const answer: Answering = (incoming, response) => {
    if (incoming.url === '/refused') response.writeHead(429, { 'Retry-After': '1' }).end()
    else incoming.socket.destroy()
  }
  await withLimitedAgent(answer, {}, async ({ server, dispatcher }) => {
    const streamed = async function* () {
      yield 'x'
    }
    const body = streamed() as unknown as Buffer
    const { statusCode } = await request(`${server.url}/refused`, { dispatcher, method: 'PUT', body })
    assert.equal(statusCode, 429)
    await assert.rejects(request(`${server.url}/broken`, { dispatcher, method: 'POST', body: 'x' }), { code: 'UND_ERR_SOCKET' })
    assert.deepEqual(server.asked, ['PUT /refused', 'POST /broken'])
    await assert.rejects(request(`${server.url}/broken`, { dispatcher }), { code: 'UND_ERR_SOCKET' })
    assert.equal(server.asked.length, 7)
  })
})

test('a request aborted while it waits takes no token, and the connection is not touched', async () => {
  const limiter = createLimiter(tokenBucket({ limit: 1, window: '1h' }))
  await withLimitedAgent(ok, { limiter }, async ({ server, dispatcher, stats }) => {
    await (await request(server.url, { dispatcher })).body.text()
    const host = new URL(server.url).host
    const before = limiter.peek(host).retryAfterMs
    const gone = new Error('gone')
    const calls = [
      (signal: AbortSignal) => request(server.url, { dispatcher, signal }),
      (signal: AbortSignal) => undiciFetch(server.url, { dispatcher, signal }),
      (signal: AbortSignal) => fetch(server.url, { dispatcher, signal } as unknown as RequestInit),
    ]
    for (const call of calls) {
      const client = new AbortController()
      const rejected = assert.rejects(call(client.signal), gone)
      await turnsUntil(() => stats().waiting === 1)
      client.abort(gone)
      await rejected
      await turnsUntil(() => stats().waiting === 0)
    }
    await new Promise((resolve) => setImmediate(resolve))
    assert.ok(limiter.peek(host).retryAfterMs <= before)
    assert.equal(server.asked.length, 1)
  })
})

test('each hop of a redirect waits for its turn, at its own host', async () => {
  const there = await LimitedServer.start(tokenBucket({ limit: 60, window: '1s' }), 'draft-11')
  const limiter = createLimiter(gcra({ limit: 20, window: '1s', burst: 1 }))
  const answer: Answering = (_, response) => void response.writeHead(302, { Location: `${there.url}/moved` }).end()
  await withLimitedAgent(answer, {}, async ({ server, agent }) => {
    const interceptor = limited({ limiter })
    const dispatcher = agent.compose(interceptor, interceptors.redirect({ maxRedirections: 3 }))
    const [here, host] = [server.url, there.url].map((url) => new URL(url).host) as [string, string]
    // The other host's next token is 50 ms away.
    limiter.take(host)
    const takenMs = performance.now()
    const { statusCode, body } = await request(server.url, { dispatcher })
    assert.deepEqual([statusCode, await body.text()], [200, 'body'])
    assert.ok(performance.now() - takenMs >= 49)
    assert.deepEqual([interceptor.statsOf(here)?.inFlight, interceptor.statsOf(host)?.inFlight, interceptor.stats().sent], [0, 0, 2])
  })
  await there.stop()
})

test('a place is held until the body is through', async () => {
  const open: ServerResponse[] = []
  const answer: Answering = (_, response) => {
    open.push(response)
    response.write('o')
  }
  await withLimitedAgent(answer, { concurrency: 1 }, async ({ server, dispatcher, stats }) => {
    const first = await request(server.url, { dispatcher })
    const second = request(server.url, { dispatcher })
    await turns(20)
    assert.deepEqual([stats().sent, stats().waiting, server.asked.length], [1, 1, 1])
    open[0]?.end('k')
    assert.equal(await first.body.text(), 'ok')
    const { body } = await second
    open[1]?.end('k')
    assert.equal(await body.text(), 'ok')
  })
})

test('a client of one host has one line, and a path with two slashes is a path', async () => {
  await withLimitedAgent(ok, { policy: tokenBucket({ limit: 5, window: '1h' }) }, async ({ server, dispatcher, stats }) => {
    await (await dispatcher.request({ origin: server.url, path: '//elsewhere/x', method: 'GET' })).body.text()
    assert.deepEqual(server.asked, ['GET //elsewhere/x'])
    assert.equal(stats().keys, 1)
    const interceptor = limited({ policy: tokenBucket({ limit: 5, window: '1h' }) })
    const client = new Client(server.url)
    await (await client.compose(interceptor).request({ origin: server.url, path: '/y', method: 'GET' })).body.text()
    assert.deepEqual([interceptor.stats().sent, interceptor.stats().keys], [1, 1])
    await client.close()
  })
})

test('requests that are not sent reject with an error', async () => {
  await withLimitedAgent(ok, { policy: tokenBucket({ limit: 1, window: '1h' }), maxWait: 20 }, async ({ server, dispatcher }) => {
    await (await request(server.url, { dispatcher })).body.text()
    await assert.rejects(request(server.url, { dispatcher }), { name: 'OutboundError', code: 'WAIT_TOO_LONG' })
    await assert.rejects(
      undiciFetch(server.url, { dispatcher }),
      (error: Error) => (error.cause as { code: string }).code === 'WAIT_TOO_LONG',
    )
  })
})
