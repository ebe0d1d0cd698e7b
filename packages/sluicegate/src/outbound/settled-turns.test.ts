import assert from 'node:assert/strict'
import { test } from 'node:test'
import { FakeNet, refusal, settled } from 'sluicegate-testkit/outbound/fake-net.js'
import { limitedFetch } from './limited-fetch.js'

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
