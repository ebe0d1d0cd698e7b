import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Agent, Client, type Dispatcher, interceptors, request, fetch as undiciFetch } from 'undici'
import { createLimiter } from '../create-limiter.js'
import { gcra, tokenBucket } from '../policy/rate-policy.js'
import { LimitedServer } from '../testing/limited-server.js'
import { limited } from './limited.js'
import type { OutboundOptions } from './outbound-options.js'

type Answering = Parameters<typeof LimitedServer.answering>[0]

interface Scene {
  readonly server: LimitedServer
  readonly agent: Agent
  readonly dispatcher: Dispatcher
  readonly stats: ReturnType<typeof limited>['stats']
  readonly statsOf: ReturnType<typeof limited>['statsOf']
}

/** A server, and an agent that is limited. */
async function scene(answer: Answering, options: OutboundOptions, play: (scene: Scene) => Promise<void>): Promise<void> {
  const server = await LimitedServer.answering(answer)
  const agent = new Agent()
  const interceptor = limited({ jitter: 0, backoffMs: 20, ...options })
  try {
    await play({ server, agent, dispatcher: agent.compose(interceptor), stats: interceptor.stats, statsOf: interceptor.statsOf })
  } finally {
    await agent.destroy()
    await server.stop()
  }
}

const ok: Answering = (_, response) => void response.end('ok')
const until = async (isSo: () => boolean): Promise<void> => {
  while (!isSo()) await new Promise((resolve) => setImmediate(resolve))
}

test('requests of a composed dispatcher wait for their turn', async () => {
  await scene(ok, { policy: gcra({ limit: 50, window: '1s', burst: 1 }) }, async ({ server, dispatcher, stats }) => {
    const startMs = performance.now()
    const answers = await Promise.all([1, 2, 3, 4, 5].map((i) => request(`${server.url}/${i}`, { dispatcher })))
    for (const { statusCode, body } of answers) assert.deepEqual([statusCode, await body.text()], [200, 'ok'])
    assert.ok(performance.now() - startMs >= 79)
    assert.deepEqual([...server.asked].sort(), ['GET /1', 'GET /2', 'GET /3', 'GET /4', 'GET /5'])
    assert.equal(stats().sent, 5)
  })
})

test('it is the same for fetch, of undici and of Node.js', async () => {
  await scene(ok, { policy: tokenBucket({ limit: 9, window: '1h' }) }, async ({ server, dispatcher, statsOf }) => {
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
  await scene(answer, {}, async (given) => {
    server = given.server
    const startMs = performance.now()
    const { statusCode, body } = await request(server.url, { dispatcher: given.dispatcher, method: 'POST', body: 'order' })
    assert.deepEqual([statusCode, await body.text()], [200, 'ok'])
    assert.ok(performance.now() - startMs >= 995)
    assert.equal(given.stats().retried, 1)
  })
})

test('a refusal with an endless body is broken off', async () => {
  let number = 0
  const answer: Answering = (_, response) => {
    if (number++ > 0) return void response.end('ok')
    response.writeHead(429, { 'Retry-After': '0' })
    const more = (): void => {
      while (!response.destroyed && response.write(Buffer.alloc(20_000))) {}
    }
    response.on('drain', more)
    more()
  }
  await scene(answer, {}, async ({ server, dispatcher }) => {
    const { statusCode, body } = await request(server.url, { dispatcher })
    assert.deepEqual([statusCode, await body.text()], [200, 'ok'])
  })
})

test('what must not be sent twice is not: streams, and what a broken connection may have done', async () => {
  const answer: Answering = (incoming, response) => {
    if (incoming.url === '/refused') response.writeHead(429, { 'Retry-After': '1' }).end()
    else incoming.socket.destroy()
  }
  await scene(answer, {}, async ({ server, dispatcher }) => {
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

test('who aborts while waiting takes no token, and the connection is not touched', async () => {
  const limiter = createLimiter(tokenBucket({ limit: 1, window: '1h' }))
  await scene(ok, { limiter }, async ({ server, dispatcher, stats }) => {
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
      await until(() => stats().waiting === 1)
      client.abort(gone)
      await rejected
      await until(() => stats().waiting === 0)
    }
    await new Promise((resolve) => setImmediate(resolve))
    assert.ok(limiter.peek(host).retryAfterMs <= before)
    assert.equal(server.asked.length, 1)
  })
})

test('each hop of a redirect waits for its turn, at its own host', async () => {
  const there = await LimitedServer.start(tokenBucket({ limit: 60, window: '1s' }), 'draft-11')
  const limiter = createLimiter(tokenBucket({ limit: 9, window: '1h' }))
  const answer: Answering = (_, response) => void response.writeHead(302, { Location: `${there.url}/moved` }).end()
  await scene(answer, { limiter }, async ({ server, agent }) => {
    const dispatcher = agent.compose(limited({ limiter }), interceptors.redirect({ maxRedirections: 3 }))
    const { statusCode, body } = await request(server.url, { dispatcher })
    assert.deepEqual([statusCode, await body.text()], [200, 'body'])
    assert.equal(limiter.peek(new URL(server.url).host).remaining, 8)
    assert.equal(limiter.peek(new URL(there.url).host).remaining, 8)
  })
  await there.stop()
})

test('a place is held until the body is through', async () => {
  await scene(ok, { concurrency: 1 }, async ({ server, dispatcher, stats }) => {
    const first = await request(server.url, { dispatcher })
    const second = request(server.url, { dispatcher })
    await until(() => stats().waiting === 1 || stats().sent === 2)
    await first.body.text()
    assert.equal(await (await second).body.text(), 'ok')
  })
})

test('a client of one host has one line, and a path with two slashes is a path', async () => {
  await scene(ok, { policy: tokenBucket({ limit: 5, window: '1h' }) }, async ({ server, dispatcher, stats }) => {
    await (await dispatcher.request({ origin: server.url, path: '//elsewhere/x', method: 'GET' })).body.text()
    assert.deepEqual(server.asked, ['GET //elsewhere/x'])
    assert.equal(stats().keys, 1)
    const interceptor = limited({ policy: tokenBucket({ limit: 5, window: '1h' }) })
    const client = new Client(server.url)
    await (await client.compose(interceptor).request({ path: '/y', method: 'GET' })).body.text()
    assert.deepEqual([interceptor.stats().sent, interceptor.stats().keys], [1, 1])
    await client.close()
  })
})

test('it says by an error what it does not send', async () => {
  await scene(ok, { policy: tokenBucket({ limit: 1, window: '1h' }), maxWaitMs: 20 }, async ({ server, dispatcher }) => {
    await (await request(server.url, { dispatcher })).body.text()
    await assert.rejects(request(server.url, { dispatcher }), { name: 'OutboundError', code: 'WAIT_TOO_LONG' })
    await assert.rejects(
      undiciFetch(server.url, { dispatcher }),
      (error: Error) => (error.cause as { code: string }).code === 'WAIT_TOO_LONG',
    )
  })
})
