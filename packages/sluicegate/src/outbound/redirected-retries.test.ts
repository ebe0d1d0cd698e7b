import assert from 'node:assert/strict'
import { test } from 'node:test'
import { LimitedServer } from 'sluicegate-testkit/outbound/limited-server.js'
import { Agent, interceptors, request } from 'undici'
import { limited } from './limited.js'
import { limitedFetch } from './limited-fetch.js'

type Answering = Parameters<typeof LimitedServer.answering>[0]

const QUICK = { jitter: 0, backoff: 1, attempts: 3 }

/** Redirects requests for `/from` with this status; refuses the first request for `/to`. */
function redirecting(status: number, to = '/to'): Answering {
  let hasRefused = false
  return ({ url }, response) => {
    if (url === '/from') response.writeHead(status, { Location: to }).end()
    else if (hasRefused) response.end('ok')
    else response.writeHead(429, { 'Retry-After': '0' }).end()
    hasRefused ||= url === '/to'
  }
}

/** What a server that redirects is asked, and what becomes of it. */
async function asked(status: number, init: RequestInit): Promise<{ readonly asked: readonly string[]; readonly end: number }> {
  const server = await LimitedServer.answering(redirecting(status))
  try {
    const response = await limitedFetch(fetch, QUICK)(`${server.url}/from`, init)
    await response.text()
    return { asked: server.asked, end: response.status }
  } finally {
    await server.stop()
  }
}

/** A port without a server. */
async function nowhere(): Promise<string> {
  const server = await LimitedServer.answering(() => undefined)
  const { url } = server
  await server.stop()
  return url
}

const post = { method: 'POST', body: 'order' }

test('when the last hop is refused, it alone is sent again, and not the POST that was answered by a redirect', async () => {
  assert.deepEqual(await asked(303, post), { asked: ['POST /from', 'GET /to', 'GET /to'], end: 200 })
  assert.deepEqual(await asked(307, post), { asked: ['POST /from', 'POST /to', 'POST /to'], end: 200 })
})

test('a request that has the same effect twice is not repeated from its start either', async () => {
  const keyed = { ...post, headers: { 'Idempotency-Key': 'k' } }
  assert.deepEqual(await asked(303, keyed), { asked: ['POST /from', 'GET /to', 'GET /to'], end: 200 })
  const put = { method: 'PUT', body: 'order' }
  assert.deepEqual(await asked(307, put), { asked: ['PUT /from', 'PUT /to', 'PUT /to'], end: 200 })
})

test('a connection that was not made is tried again for the hop that it belongs to', async () => {
  const gone = await nowhere()
  const server = await LimitedServer.answering(redirecting(303, gone))
  try {
    const polite = limitedFetch(fetch, QUICK)
    await assert.rejects(polite(`${server.url}/from`, post), TypeError)
    assert.deepEqual(server.asked, ['POST /from'])
    await assert.rejects(polite(`${server.url}/from`), TypeError)
    assert.deepEqual(server.asked, ['POST /from', 'GET /from'])
    assert.equal(polite.stats().retried, 4)
    const retried = async (init: RequestInit | Request): Promise<number> => {
      const direct = limitedFetch(fetch, QUICK)
      await assert.rejects(init instanceof Request ? direct(init) : direct(gone, init), TypeError)
      return direct.stats().retried
    }
    assert.equal(await retried(post), 2)
    assert.equal(await retried({ ...post, redirect: 'manual' }), 2)
    assert.equal(await retried(new Request(gone, { ...post, redirect: 'error' })), 2)
  } finally {
    await server.stop()
  }
})

test('the function retry learns of redirects', async () => {
  const seen: unknown[] = []
  const server = await LimitedServer.answering(redirecting(303))
  try {
    const polite = limitedFetch(fetch, {
      ...QUICK,
      retry: (_, { status, isRedirected }, isSafe) => {
        seen.push(status, isRedirected, isSafe)
        return false
      },
    })
    await polite(`${server.url}/from`, post)
    await polite(`${server.url}/to`, post)
    assert.deepEqual(seen, [429, false, true])
  } finally {
    await server.stop()
  }
})

test('it is the same for an interceptor, within redirects and around them', async () => {
  for (const isAround of [false, true]) {
    const server = await LimitedServer.answering(redirecting(303))
    const agent = new Agent()
    const redirect = interceptors.redirect({ maxRedirections: 3 })
    const dispatcher = isAround ? agent.compose(redirect, limited(QUICK)) : agent.compose(limited(QUICK), redirect)
    try {
      const { statusCode, body, context } = await request(`${server.url}/from`, { dispatcher, method: 'POST', body: 'order' })
      await body.text()
      // Within them a hop is its own request, and may be sent again without the others.
      const hops = isAround ? ['POST /from', 'GET /to'] : ['POST /from', 'GET /to', 'GET /to']
      assert.deepEqual({ statusCode, asked: server.asked }, { statusCode: isAround ? 429 : 200, asked: hops })
      const { history } = context as { history: URL[] }
      assert.deepEqual(
        history.map(({ pathname }) => pathname),
        ['/from', '/to'],
      )
    } finally {
      await agent.destroy()
      await server.stop()
    }
  }
})

test('an interceptor around redirects does not repeat a POST whose redirect led nowhere', async () => {
  const server = await LimitedServer.answering(redirecting(303, await nowhere()))
  const agent = new Agent()
  const dispatcher = agent.compose(interceptors.redirect({ maxRedirections: 3 }), limited(QUICK))
  try {
    await assert.rejects(request(`${server.url}/from`, { dispatcher, method: 'POST', body: 'order' }), { code: 'ECONNREFUSED' })
    assert.deepEqual(server.asked, ['POST /from'])
  } finally {
    await agent.destroy()
    await server.stop()
  }
})
