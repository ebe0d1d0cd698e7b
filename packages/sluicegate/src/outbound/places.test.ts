import assert from 'node:assert/strict'
import { test } from 'node:test'
import { FakeNet, refusal, settled } from 'sluicegate-testkit/outbound/fake-net.js'
import { createLimiter } from '../create-limiter.js'
import { concurrency, gcra, tokenBucket } from '../policy/single-policy.js'
import { limitedFetch } from './limited-fetch.js'

/** A body that comes part by part, each when it is read. */
function inParts(...parts: string[]): ReadableStream {
  const pull = (body: ReadableStreamDefaultController): void => {
    const part = parts.shift()
    if (part === undefined) body.close()
    else body.enqueue(new TextEncoder().encode(part))
  }
  return new ReadableStream({ pull }, { highWaterMark: 0 })
}

/** Five calls of one host, of which at most two may be under way. */
async function five(options: Parameters<typeof limitedFetch>[1] = {}) {
  const net = new FakeNet((_, number) => new Response(inParts('body ', String(number)), { headers: { 'X-Number': String(number) } }))
  const polite = limitedFetch(net.fetch, { concurrency: 2, clock: net.clock, ...options })
  const calls = Array.from({ length: 5 }, (_, i) => polite(`http://a/${i}`))
  await settled()
  const response = (i: number): Promise<Response> => calls[i] as Promise<Response>
  return { net, polite, response, calls }
}

test('a place is free again when a body was read, cancelled or broke off', async () => {
  const { net, response } = await five()
  assert.equal(net.times.length, 2)
  assert.equal(await (await response(0)).text(), 'body 1')
  await settled()
  assert.equal(net.times.length, 3)
  await (await response(1)).body?.cancel()
  await settled()
  assert.equal(net.times.length, 4)
  const broken = new FakeNet(() => new Response(new ReadableStream({ pull: (body) => body.error(new Error('reset')) })))
  const polite = limitedFetch(broken.fetch, { concurrency: 1, clock: broken.clock })
  const first = await polite('http://a/')
  const second = polite('http://a/')
  await assert.rejects(first.text(), /reset/)
  assert.equal((await second).status, 200)
})

test('a body that stalls gives its place away after bodyTimeout, and can be read later', async () => {
  const { net, response } = await five({ bodyTimeout: 1_000 })
  const slow = (await response(0)).body?.getReader()
  await net.pass(999, 111)
  await slow?.read()
  await net.pass(1, 1)
  assert.equal(net.times.length, 3, 'the unread body')
  await net.pass(1_000, 100)
  assert.equal(net.times.length, 5)
  assert.equal(await (await response(1)).text(), 'body 2')
})

test('a response without a body, and a fetch that failed, hold no place', async () => {
  const net = new FakeNet((_, number) => (number === 1 ? new Response(null, { status: 204 }) : new Error('wrong')))
  const polite = limitedFetch(net.fetch, { concurrency: 1, clock: net.clock })
  assert.equal((await polite('http://a/')).status, 204)
  for (let i = 0; i < 3; i++) await assert.rejects(polite('http://a/'), /wrong/)
  assert.equal(polite.stats().inFlight, 0)
})

test('a response that holds a place is as fetch made it, and so is its clone', async () => {
  const original = Object.defineProperties(new Response('body', { status: 201, statusText: 'Made', headers: { 'X-A': 'b' } }), {
    url: { value: 'http://a/x' },
    redirected: { value: true },
  })
  const response = await limitedFetch(async (_: string) => original as Response, { concurrency: 1 })('http://a/')
  for (const each of [response.clone().clone(), response]) {
    const { status, statusText, url, redirected, type, ok } = each
    assert.deepEqual([status, statusText, url, redirected, type, ok], [201, 'Made', 'http://a/x', true, 'default', true])
    assert.deepEqual([each.headers.get('x-a'), await each.text(), each instanceof Response], ['b', 'body', true])
  }
})

test('a limiter of places gets them back with the bodies', async () => {
  const policy = concurrency({ limit: 2, ttl: '1m' })
  const net = new FakeNet()
  const limiter = createLimiter(policy, { clock: net.clock })
  const { response } = await five({ concurrency: 5, limiter, clock: net.clock })
  assert.equal(limiter.peek('a').remaining, 0)
  for (let i = 0; i < 5; i++) await (await response(i)).text()
  assert.equal(limiter.peek('a').remaining, 2)
})

test('a redirect to another host counts there, and what that host announces applies there', async () => {
  const limiter = createLimiter(tokenBucket({ limit: 10, window: '1s' }), { clock: new FakeNet().clock })
  const net = new FakeNet(({ url }) => {
    if (!url.startsWith('http://a/moved')) return new Response('ok')
    const headers = { 'RateLimit-Limit': '5', 'RateLimit-Remaining': '0', 'RateLimit-Reset': '10' }
    return Object.defineProperties(new Response('from b', { headers }), { url: { value: 'http://b/here' }, redirected: { value: true } })
  })
  const polite = limitedFetch(net.fetch, { limiter, clock: net.clock })
  await polite('http://a/moved')
  await settled()
  assert.deepEqual([limiter.peek('a').remaining, limiter.peek('b').remaining], [9, 9])
  const calls = [polite('http://a/1'), polite('http://b/1')]
  await net.pass(11_000, 100)
  await Promise.all(calls)
  assert.deepEqual(net.times, [0, 0, 10_000])
})

test('of more hosts than maxKeys the longest idle is forgotten, one that wants to be left alone last', async () => {
  const net = new FakeNet(({ url }) =>
    url === 'http://0/' ? new Response(null, { status: 429, headers: { 'Retry-After': '60' } }) : new Response(),
  )
  const polite = limitedFetch(net.fetch, { clock: net.clock, maxKeys: 3, attempts: 1 })
  for (let host = 0; host < 500; host++) await polite(`http://h${host}/`.replace('h0', '0'))
  assert.equal(polite.stats().keys, 3)
  assert.notEqual(polite.statsOf('0.0.0.0') ?? polite.statsOf('0'), undefined)
  assert.notEqual(polite.statsOf('h499'), undefined)
  assert.equal(polite.statsOf('h1'), undefined)
})

test('with all keys in use another one is refused', async () => {
  const net = new FakeNet(undefined, 10)
  const polite = limitedFetch(net.fetch, { clock: net.clock, maxKeys: 2, policy: gcra({ limit: 1, window: '1s' }) })
  const calls = [polite('http://a/'), polite('http://b/')]
  await settled()
  await assert.rejects(polite('http://c/'), { code: 'KEYS_FULL', host: 'c' })
  await net.pass(10)
  await Promise.all(calls)
  const late = polite('http://c/')
  await net.pass(10)
  assert.equal((await late).status, 200)
})

/** A response that came from elsewhere, as it tells. */
function redirectedTo(url: string): Response {
  return Object.defineProperties(new Response('from elsewhere'), { url: { value: url }, redirected: { value: true } })
}

test('a key that throws at a redirect fails that request, and its host goes on', async () => {
  const tenants: Record<string, { id: string }> = { a: { id: 'tenant' } }
  const answers = [redirectedTo('http://unknown/'), refusal(429, '1'), new Response('ok'), new Response('ok')]
  const net = new FakeNet((_, number) => answers[number - 1] as Response)
  const polite = limitedFetch(net.fetch, {
    clock: net.clock,
    jitter: 0,
    concurrency: 1,
    key: ({ url }) => (tenants[url.host] as { id: string }).id,
  })
  await assert.rejects(polite('http://a/'), TypeError)
  assert.deepEqual([polite.stats().inFlight, polite.stats().sent], [0, 1])
  const calls = [polite('http://a/'), polite('http://a/')]
  await net.pass(1_100, 10)
  for (const call of calls) assert.equal(await (await call).text(), 'ok')
  assert.equal(polite.stats().inFlight, 0)
})

test('what stands in for a response may know less of itself', async () => {
  const answers: object[] = [
    redirectedTo('//b/there'),
    { status: 200, url: 'http://', redirected: true },
    { status: 200, text: async () => 'no headers' },
  ]
  const net = new FakeNet((_, number) => answers[number - 1] as Response)
  const polite = limitedFetch(net.fetch, { clock: net.clock, concurrency: 1, bodyTimeout: 1 })
  for (const answer of answers) {
    const response = await polite('http://a/')
    assert.equal(response.status, 200)
    if (!(answer instanceof Response)) assert.equal(response, answer)
    else await response.text()
  }
  assert.deepEqual([polite.stats().inFlight, polite.stats().keys, polite.statsOf('b')?.inFlight], [0, 2, 0])
})

test('what is no response at all fails its call alone', async () => {
  const net = new FakeNet((_, number) => (number === 1 ? (undefined as unknown as Response) : new Response('ok')))
  const polite = limitedFetch(net.fetch, { clock: net.clock, concurrency: 1 })
  await assert.rejects(polite('http://a/'), TypeError)
  assert.equal((await polite('http://a/')).status, 200)
})

test('a Request that does not show whether it has a body is sent again only where it cannot have one', async () => {
  const opaque = (method: string): Request => {
    return { url: 'http://a/', method, clone: () => opaque(method) } as unknown as Request
  }
  for (const [method, times] of [
    ['POST', 1],
    ['PUT', 1],
    ['GET', 2],
  ] as const) {
    const net = new FakeNet((_, number) => (number === 1 ? refusal(429, '1') : new Response('ok')))
    const call = limitedFetch((input: Request) => net.fetch(input.url), { clock: net.clock, jitter: 0 })(opaque(method))
    await net.pass(2_000, 50)
    assert.equal((await call).status, times === 1 ? 429 : 200)
    await settled()
    assert.equal(net.times.length, times)
  }
})
