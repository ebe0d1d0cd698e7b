import assert from 'node:assert/strict'
import { test } from 'node:test'
import { FakeNet, refusal, settled } from 'sluicegate-testkit/outbound/fake-net.js'
import { createLimiter } from '../create-limiter.js'
import type { Decision } from '../decision/decision.js'
import { concurrency, gcra, tokenBucket } from '../policy/single-policy.js'
import { KeyLimiters, KeyQueues } from './key-queues.js'
import { limitedFetch } from './limited-fetch.js'
import { LimiterClient } from './limiter-client.js'
import { type OutboundLimiter, outboundSettings } from './outbound-options.js'

const EVEN = gcra({ limit: 10, window: '1s', burst: 1 })

/** A limiter over a store in an outage: no request passes until it ends. */
function outLimiter(): OutboundLimiter & { isBack: boolean; refunds: number } {
  const decide = async (): Promise<Decision> => ({
    allowed: limiter.isBack,
    limit: 1,
    remaining: 0,
    retryAfterMs: limiter.isBack ? 0 : 100,
    resetAfterMs: 0,
    policy: 'out',
    source: limiter.isBack ? 'store' : 'outage',
  })
  const limiter = {
    policy: EVEN,
    isBack: false,
    refunds: 0,
    take: decide,
    wait: decide,
    refund: () => limiter.refunds++,
    penalize: () => undefined,
  }
  return limiter
}

test('an outage that denies everything is waited for, and is no denial; requests that do not wait as long get OUTAGE', async () => {
  const net = new FakeNet()
  const limiter = outLimiter()
  const patient = limitedFetch(net.fetch, { limiter, clock: net.clock })
  const calls = [patient('http://a/1'), patient('http://a/2')]
  await net.pass(1_000, 10)
  assert.equal(net.arrivals.length, 0)
  for (const maxWaitMs of [0, 250]) {
    const hasty = assert.rejects(limitedFetch(net.fetch, { limiter, clock: net.clock, maxWait: maxWaitMs })('http://a/'), {
      code: 'OUTAGE',
    })
    await net.pass(maxWaitMs, 10)
    await hasty
  }
  limiter.isBack = true
  await net.pass(1_000, 10)
  assert.deepEqual(
    (await Promise.all(calls)).map(({ status }) => status),
    [200, 200],
  )
})

test('a block by hand is waited for', async () => {
  const net = new FakeNet()
  const limiter = createLimiter(EVEN, { clock: net.clock })
  const polite = limitedFetch(net.fetch, { limiter, clock: net.clock })
  await polite('http://a/1')
  const second = polite('http://a/2')
  await settled()
  limiter.block('a', '10s')
  await net.pass(9_900, 100)
  assert.equal(net.arrivals.length, 1)
  await net.pass(2_000, 100)
  assert.equal((await second).status, 200)
})

test('a limiter in which too many others wait is asked again', async () => {
  const net = new FakeNet()
  const limiter = createLimiter(EVEN, { clock: net.clock, maxWaiting: 1 })
  await limiter.wait('other')
  const other = limiter.wait('other')
  const polite = limitedFetch(net.fetch, { limiter, clock: net.clock })
  const calls = [1, 2, 3].map((i) => polite(`http://a/${i}`))
  await net.pass(1_000, 10)
  await Promise.all([...calls, other])
  assert.equal(net.arrivals.length, 3)
})

test('of as many keys as there may be one each can wait', async () => {
  const { clock } = new FakeNet()
  const maxKeys = 12_000
  const limiter = new KeyLimiters({ policy: EVEN, policyFor: undefined, limiter: undefined, maxKeys, clock }).of('') as OutboundLimiter
  let denied = 0
  for (let i = 0; i < maxKeys; i++) {
    limiter.penalize(`host ${i}`, 1)
    void limiter.wait(`host ${i}`).then(({ allowed }) => allowed || denied++)
  }
  await settled()
  clock.advance(200)
  await settled()
  assert.equal(denied, 0)
})

test('an uncharged token is not returned', async () => {
  const decision: Decision = { allowed: true, limit: 1, remaining: 0, retryAfterMs: 0, resetAfterMs: 0, policy: 'p', source: 'lease' }
  const returns = async (decided: Decision): Promise<number> => {
    const limiter = { ...outLimiter(), policy: tokenBucket({ limit: 1, window: '1h' }), refunds: 0, take: async () => decided }
    limiter.refund = () => ++limiter.refunds
    const door = new LimiterClient(limiter, 'a')
    const answered = new Promise<Decision | undefined>((decided, failed) => door.ask(1, 0, { nowMs: () => 0, decided, failed }))
    door.giveBack((await answered) as Decision)
    door.giveBack({ ...decision })
    return limiter.refunds
  }
  assert.equal(await returns({ ...decision, source: 'outage' }), 0)
  assert.equal(await returns({ ...decision, wouldDeny: true }), 0)
  assert.equal(await returns(decision), 1)
})

test('a place of the limiter is kept for as long as a response takes, whatever its ttl', async () => {
  const net = new FakeNet()
  const limiter = createLimiter(concurrency({ limit: 1, ttl: '1s' }), { clock: net.clock })
  const polite = limitedFetch(net.fetch, { limiter, clock: net.clock })
  const first = await polite('http://a/1')
  const second = polite('http://a/2')
  await net.pass(10_000, 100)
  assert.equal(net.arrivals.length, 1)
  await first.text()
  await net.pass(100, 10)
  await (await second).text()
  await net.pass(10_000, 100)
  assert.equal(limiter.peek('a').remaining, 1)
})

test('a redirect within a key is one more request of it', async () => {
  const net = new FakeNet(() =>
    Object.defineProperties(new Response('moved'), { url: { value: 'http://a/x/' }, redirected: { value: true } }),
  )
  const limiter = createLimiter(tokenBucket({ limit: 10, window: '1h' }), { clock: net.clock })
  await limitedFetch(net.fetch, { limiter, clock: net.clock })('http://a/x')
  assert.equal(limiter.peek('a').remaining, 8)
})

test('a limiter that throws fails waiting requests and no later ones', async () => {
  const net = new FakeNet()
  let isBroken = true
  const inner = createLimiter(EVEN, { clock: net.clock })
  const limiter: OutboundLimiter = {
    policy: EVEN,
    wait: (key, options) => {
      if (isBroken) throw new Error('broken')
      return inner.wait(key, options)
    },
    refund: () => undefined,
    penalize: () => undefined,
  }
  const polite = limitedFetch(net.fetch, { limiter, clock: net.clock })
  await assert.rejects(polite('http://a/'), /broken/)
  isBroken = false
  assert.equal((await polite('http://a/')).status, 200)
})

test('a signal that is none fails its own request, and leaves nothing in the line', async () => {
  const net = new FakeNet()
  const polite = limitedFetch(net.fetch, { policy: EVEN, clock: net.clock, concurrency: 1 })
  await (await polite('http://a/1')).text()
  await assert.rejects(polite('http://a/2', { signal: { aborted: false } as AbortSignal }), TypeError)
  assert.deepEqual([polite.stats().waiting, polite.stats().inFlight], [0, 0])
  const third = polite('http://a/3')
  await net.pass(200)
  assert.equal((await third).status, 200)
  assert.equal(net.arrivals.length, 2)
})

test('a turn that was not used counts nowhere', async () => {
  const { clock } = new FakeNet()
  const limiter = createLimiter(tokenBucket({ limit: 3, window: '1h' }), { clock })
  const lines = new KeyQueues(outboundSettings({ limiter, clock }))
  const request = { method: 'GET', header: () => undefined, isRepeatable: true, signal: undefined, priority: 0 }
  const turn = await lines.turn('a', { ...request, url: new URL('http://a/') }, 0)
  assert.equal(lines.stats().sent, 1)
  turn.unused()
  const { sent, inFlight } = lines.stats()
  assert.deepEqual([sent, inFlight, limiter.peek('a').remaining], [0, 0, 3])
})

test('errors have the time to come back as far as it is known: Infinity is never', async () => {
  const net = new FakeNet()
  const policy = gcra({ limit: 1, window: '10s' })
  const polite = limitedFetch(net.fetch, { policy, maxWaiting: 1, maxWait: 4_000, concurrency: 1, clock: net.clock })
  const first = await polite('http://a/')
  const late = assert.rejects(polite('http://a/'), { code: 'WAIT_TOO_LONG', retryAfterMs: 10_000 })
  await assert.rejects(polite('http://a/'), { code: 'QUEUE_FULL', retryAfterMs: 0 })
  await first.text()
  await late
  const patient = limitedFetch(net.fetch, { policy, clock: net.clock })
  await patient('http://a/')
  const waiting = assert.rejects(patient('http://a/'), { code: 'CLOSED', retryAfterMs: Number.POSITIVE_INFINITY })
  await settled()
  patient.close()
  await waiting
  await assert.rejects(patient('http://a/'), { code: 'CLOSED', retryAfterMs: Number.POSITIVE_INFINITY })
  const hasty = limitedFetch(net.fetch, { policy, maxWait: 0, clock: net.clock })
  await hasty('http://b/')
  await assert.rejects(hasty('http://b/'), { code: 'WAIT_TOO_LONG', retryAfterMs: 10_000 })
})

test('a further attempt waits no longer than maxTotal leaves it, and is never one too many in a line', async () => {
  const net = new FakeNet((_, number) => (number === 1 ? refusal(503) : new Response('ok')))
  const options = { clock: net.clock, jitter: 0 }
  const polite = limitedFetch(net.fetch, { ...options, policy: tokenBucket({ limit: 1, window: '1h' }), maxTotal: 5_000 })
  const rejected = assert.rejects(polite('http://a/'), { code: 'WAIT_TOO_LONG' })
  await net.pass(5_000, 100)
  await rejected
  assert.equal(net.arrivals.length, 1)
  const full = new FakeNet((_, number) => (number === 1 ? refusal(429, '1') : new Response('ok')), 10)
  const narrow = limitedFetch(full.fetch, { ...options, clock: full.clock, concurrency: 1, maxWaiting: 1 })
  const calls = [narrow('http://a/1'), narrow('http://a/2')]
  await full.pass(2_000, 10)
  for (const call of calls) {
    assert.equal(await (await call).text(), 'ok')
    await full.pass(100, 10)
  }
  assert.equal(full.arrivals.length, 3)
})

test('close() ends the wait between two attempts', async () => {
  const net = new FakeNet(() => refusal(503))
  const polite = limitedFetch(net.fetch, { clock: net.clock, backoff: 60_000 })
  const rejected = assert.rejects(polite('http://a/', { method: 'PUT' }), { code: 'CLOSED' })
  await net.pass(10)
  polite.close()
  await rejected
  assert.equal(net.arrivals.length, 1)
})

test('a request that cannot wait as long as needed is rejected at once, also behind others', async () => {
  const net = new FakeNet()
  const limiter = createLimiter(gcra({ limit: 1, window: '10s' }), { clock: net.clock })
  const polite = limitedFetch(net.fetch, { limiter, maxWait: 12_000, clock: net.clock })
  await polite('http://a/1')
  const second = polite('http://a/2')
  await settled()
  await assert.rejects(limitedFetch(net.fetch, { limiter, maxWait: 1_000, clock: net.clock })('http://a/3'), {
    code: 'WAIT_TOO_LONG',
    retryAfterMs: 20_000,
  })
  await net.pass(10_000, 100)
  assert.equal((await second).status, 200)
  const places = createLimiter(concurrency({ limit: 1, ttl: '1m' }), { clock: net.clock })
  const held = limitedFetch(net.fetch, { limiter: places, maxWait: 5_000, clock: net.clock })
  const first = await held('http://b/1')
  const next = held('http://b/2')
  await net.pass(1_000, 100)
  await first.text()
  assert.equal((await next).status, 200)
})
