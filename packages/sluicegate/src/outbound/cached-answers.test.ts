import assert from 'node:assert/strict'
import { test } from 'node:test'
import { FakeNet } from 'sluicegate-testkit/outbound/fake-net.js'
import { withLimitedAgent } from 'sluicegate-testkit/outbound/limited-server.js'
import { request } from 'undici'
import { limitedFetch } from './limited-fetch.js'

const SPENT = { RateLimit: '"a";r=0;t=60', 'RateLimit-Policy': '"a";q=5;w=60', 'X-RateLimit-Remaining': '0', 'X-RateLimit-Reset': '60' }

test('limitedFetch does not wait for the quota of a cached response', async () => {
  const net = new FakeNet(() => new Response('ok', { headers: { ...SPENT, Age: '30' } }))
  const polite = limitedFetch(net.fetch, { clock: net.clock, jitter: 0 })
  await polite('http://a/1')
  await polite('http://a/2')
  assert.deepEqual(net.times, [0, 0])
  assert.equal(polite.statsOf('a')?.remaining, undefined)
})

test('nor does the interceptor of undici', async () => {
  await withLimitedAgent(
    (_, response) => response.writeHead(200, { ...SPENT, Age: '1' }).end(),
    { maxWait: 50 },
    async ({ server, dispatcher }) => {
      for (let i = 0; i < 3; i++) assert.equal((await request(server.url, { dispatcher })).statusCode, 200)
    },
  )
})

test('a cached refusal is waited for only as long as its Retry-After has still to run', async () => {
  const net = new FakeNet((_, number) =>
    number === 1 ? new Response(null, { status: 429, headers: { 'Retry-After': '60', Age: '50' } }) : new Response('ok'),
  )
  const polite = limitedFetch(net.fetch, { clock: net.clock, jitter: 0 })
  const call = polite('http://a/')
  await net.pass(10_100, 10)
  assert.equal((await call).status, 200)
  assert.ok((net.times[1] as number) >= 10_000 && (net.times[1] as number) <= 10_100, String(net.times))
})

test('after a cached refusal whose Retry-After is over, the pause is that of refusals without one', async () => {
  const net = new FakeNet((_, number) =>
    number === 1 ? new Response(null, { status: 503, headers: { 'Retry-After': '60', Age: '90' } }) : new Response('ok'),
  )
  const polite = limitedFetch(net.fetch, { clock: net.clock, jitter: 0, backoff: 500 })
  const call = polite('http://a/')
  await net.pass(1_100, 10)
  assert.equal((await call).status, 200)
  assert.equal(net.arrivals.length, 2)
})

test('Retry-After has precedence over a reset beside it', async () => {
  const headers = { ...SPENT, 'Retry-After': '2' }
  const net = new FakeNet((_, number) => (number === 1 ? new Response(null, { status: 429, headers }) : new Response('ok')))
  const polite = limitedFetch(net.fetch, { clock: net.clock, jitter: 0 })
  const call = polite('http://a/')
  await net.pass(2_100, 10)
  assert.equal((await call).status, 200)
})
