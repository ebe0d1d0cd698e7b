import assert from 'node:assert/strict'
import { test } from 'node:test'
import { FakeNet, refusal } from 'sluicegate-testkit/outbound/fake-net.js'
import { limitedFetch } from './limited-fetch.js'
import type { ThrottleEvent } from './outbound-options.js'

/** A refusal as GitHub sends it: with its reset, without `Retry-After`. */
function spent(resetS: number): Response {
  return new Response(null, { status: 429, headers: { 'X-RateLimit-Remaining': '0', 'X-RateLimit-Reset': String(resetS) } })
}

test('a refusal with only a reset is the answer when that is too far off, and a pause otherwise', async () => {
  const net = new FakeNet(() => spent(3_600))
  const throttles: ThrottleEvent[] = []
  const polite = limitedFetch(net.fetch, { clock: net.clock, jitter: 0, onThrottle: (event) => throttles.push(event) })
  assert.equal((await polite('http://a/')).status, 429)
  assert.equal(polite.statsOf('a')?.pauseMs, 3_600_000)
  assert.equal(throttles[0]?.pauseMs, 3_600_000)
  await assert.rejects(polite('http://a/'), { code: 'PAUSED', retryAfterMs: 3_600_000 })
  const hasty = limitedFetch(net.fetch, { clock: net.clock, jitter: 0, attempts: 1, maxWait: 1_000, maxPause: 1e9 })
  await hasty('http://a/')
  await assert.rejects(hasty('http://a/'), { code: 'WAIT_TOO_LONG', retryAfterMs: 3_600_000 })
})

test('a moment in Retry-After closes a host for 40 s, and no pause or empty budget closes it for good', async () => {
  const net: FakeNet = new FakeNet((_, number) =>
    number === 1 ? refusal(429, String(net.clock.nowMs() / 1_000 + 40)) : new Response('ok'),
  )
  net.clock.set(1_764_000_000_000)
  const polite = limitedFetch(net.fetch, { clock: net.clock, jitter: 0, attempts: 1 })
  assert.equal((await polite('http://a/')).status, 429)
  assert.equal(polite.statsOf('a')?.pauseMs, 40_000)
  for (const headers of [{ 'Retry-After': '999999999' }, { 'X-RateLimit-Remaining': '0', 'X-RateLimit-Reset': '999999999' }]) {
    const closed = new FakeNet((_, number) => (number === 1 ? new Response(null, { status: 429, headers }) : new Response('ok')))
    const daily = limitedFetch(closed.fetch, { clock: closed.clock, jitter: 0, attempts: 1 })
    assert.equal((await daily('http://a/')).status, 429)
    assert.equal(daily.statsOf('a')?.pauseMs, 86_400_000)
    await assert.rejects(daily('http://a/'), { code: 'PAUSED' })
    closed.clock.advance(86_400_001)
    assert.equal((await daily('http://a/')).status, 200)
  }
})

test('maxTotal looks at resets as it does at Retry-After', async () => {
  const net = new FakeNet(() => spent(200))
  const call = limitedFetch(net.fetch, { clock: net.clock, jitter: 0, maxTotal: 5_000 })('http://a/')
  await net.pass(300_000, 1_000)
  assert.equal((await call).status, 429)
  assert.equal(net.arrivals.length, 1)
})

test('of idle hosts one that has nothing left is forgotten last', async () => {
  const net = new FakeNet(({ url }) => (url === 'http://h0/' ? spent(60) : new Response()))
  const polite = limitedFetch(net.fetch, { clock: net.clock, maxKeys: 3, attempts: 1 })
  for (let host = 0; host < 20; host++) await polite(`http://h${host}/`)
  assert.notEqual(polite.statsOf('h0'), undefined)
})

test('a request that takes long keeps no other from going when a pause is over', async () => {
  let answerPoll = (_: Response): void => undefined
  const net = new FakeNet(({ url }, number) => {
    if (url.endsWith('/poll')) return new Promise<Response>((resolve) => (answerPoll = resolve))
    return number === 2 ? refusal(429, '1') : new Response('ok')
  })
  const polite = limitedFetch(net.fetch, { clock: net.clock, jitter: 0 })
  const poll = polite('http://a/poll')
  const calls = [1, 2, 3].map((i) => polite(`http://a/${i}`))
  await net.pass(2_000, 10)
  await Promise.all(calls)
  assert.ok(Math.max(...net.times) <= 1_100)
  answerPoll(new Response('news'))
  assert.equal((await poll).status, 200)
})

test('maxPause is about pauses alone: what is only spread or not known yet is waited for', async () => {
  const net = new FakeNet(undefined, 2_000)
  const polite = limitedFetch(net.fetch, { clock: net.clock, maxPause: 0 })
  const calls = Array.from({ length: 12 }, (_, i) => polite(`http://a/${i}`))
  await net.pass(5_000, 100)
  assert.ok((await Promise.all(calls)).every(({ status }) => status === 200))
  const seen = new FakeNet(
    () => new Response(null, { headers: { 'RateLimit-Limit': '60', 'RateLimit-Remaining': '30', 'RateLimit-Reset': '60' } }),
  )
  const spread = limitedFetch(seen.fetch, { clock: seen.clock, maxPause: 500 })
  for (let i = 0; i < 4; i++) {
    const call = spread('http://a/')
    await seen.pass(3_000, 100)
    assert.equal((await call).status, 200)
  }
})

test('what slow requests may have used up is no reason to reject waiting requests', async () => {
  const answers: ((response: Response) => void)[] = []
  const headers = { 'X-RateLimit-Limit': '100', 'X-RateLimit-Remaining': '3', 'X-RateLimit-Reset': '3600' }
  const net = new FakeNet(({ url }) =>
    url.endsWith('/slow') ? new Promise<Response>((resolve) => answers.push(resolve)) : new Response('ok', { headers }),
  )
  const polite = limitedFetch(net.fetch, { clock: net.clock, attempts: 1 })
  const slow = [1, 2, 3].map(() => polite('http://a/slow'))
  await polite('http://a/1')
  const waiting = polite('http://a/2')
  await net.pass(1_000, 100)
  assert.equal(polite.stats().waiting, 1)
  // They were in it already, and the window is another one by now.
  for (const answer of answers) answer(new Response('ok', { headers: { ...headers, 'X-RateLimit-Remaining': '97' } }))
  await net.pass(10)
  assert.equal((await waiting).status, 200)
  await Promise.all(slow)
})

test('a key can be forgotten: requests that wait through a pause are sent, as to an unknown host', async () => {
  const net = new FakeNet((_, number) => (number === 1 ? refusal(429, '60') : new Response('ok')))
  const polite = limitedFetch(net.fetch, { clock: net.clock, jitter: 0, attempts: 1 })
  assert.equal((await polite('http://a/')).status, 429)
  const calls = [1, 2, 3].map((i) => polite(`http://a/${i}`))
  await net.pass(1_000, 100)
  assert.equal(net.arrivals.length, 1)
  assert.equal(polite.forget('a'), true)
  assert.deepEqual(polite.statsOf('a'), { waiting: 0, inFlight: 3, perSecond: Number.POSITIVE_INFINITY, pauseMs: 0, remaining: undefined })
  await net.pass(1_000, 100)
  assert.ok((await Promise.all(calls)).every(({ status }) => status === 200))
  assert.equal(polite.forget('b'), false)
  polite.close()
})

test('forgetting a pause while its probe is under way leaves no request behind', async () => {
  const answers: ((response: Response) => void)[] = []
  const net = new FakeNet((_, number) => (number === 1 ? refusal(429, '1') : new Promise<Response>((resolve) => answers.push(resolve))))
  const polite = limitedFetch(net.fetch, { clock: net.clock, jitter: 0, attempts: 1 })
  await polite('http://a/')
  const calls = [1, 2, 3].map((i) => polite(`http://a/${i}`))
  await net.pass(1_500, 100)
  assert.equal(net.arrivals.length, 2)
  polite.forget('a')
  await net.pass(100, 10)
  assert.equal(net.arrivals.length, 4)
  for (const answer of answers) answer(new Response('ok'))
  await net.pass(100, 10)
  await Promise.all(calls)
  assert.equal(polite.statsOf('a')?.inFlight, 0)
  polite.close()
})

test('spacing beyond the longest wait is rejected at once, too', async () => {
  const headers = { 'X-RateLimit-Limit': '100', 'X-RateLimit-Remaining': '2', 'X-RateLimit-Reset': '3600' }
  const net = new FakeNet(() => new Response('ok', { headers }))
  const polite = limitedFetch(net.fetch, { clock: net.clock, maxWait: 5_000 })
  const first = polite('http://a/1')
  const second = polite('http://a/2')
  await first
  await second
  await assert.rejects(polite('http://a/3'), { code: 'WAIT_TOO_LONG', retryAfterMs: 1_799_975 })
})
