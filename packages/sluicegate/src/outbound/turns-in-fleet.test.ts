import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { longTest, until } from 'sluicegate-testkit'
import { fleet, turns } from 'sluicegate-testkit/cluster/channel-pair.js'
import { CountedHost, OutboundFleet, untilOut } from 'sluicegate-testkit/outbound/outbound-fleet.js'
import { concurrency, gcra, tokenBucket } from '../policy/single-policy.js'
import { limitedFetch } from './limited-fetch.js'

// Calls of a host by processes that share its budget in Redis. Nothing of the budgets by the hour comes back while a test runs.

const HOUR_MS = 3_600_000

let shared: OutboundFleet
before(async () => {
  shared = await OutboundFleet.start()
})
after(() => shared.stop())

test('a request aborted while a token is requested or booked leaves nothing spent', async () => {
  const policy = tokenBucket({ limit: 1, window: '1h', burst: 2, name: 'aborts' })
  await using one = await shared.member(policy, { mode: 'exact' })
  const host = new CountedHost()
  const polite = host.limited(one.limiter)
  const client = new AbortController()
  await shared.withFault({ kind: 'latency', delayMs: 30 }, async () => {
    const asking = polite('http://a/1', { signal: client.signal })
    client.abort(new Error('gone'))
    await assert.rejects(asking, /gone/)
  })
  await until('it has come back', async () => (await one.limiter.peek('a')).remaining === 2)
  await polite('http://a/2')
  await polite('http://a/3')
  const later = new AbortController()
  const booked = polite('http://a/4', { signal: later.signal })
  const rejected = assert.rejects(booked, /gone/)
  await until('it is booked', async () => (await one.limiter.peek('a')).retryAfterMs > HOUR_MS)
  later.abort(new Error('gone'))
  await rejected
  await until('it has come back', async () => (await one.limiter.peek('a')).retryAfterMs <= HOUR_MS)
  assert.equal(host.paths.length, 2)
})

test('the token of an aborted request goes to the next', async () => {
  await using one = await shared.member(tokenBucket({ limit: 4, window: '1s', burst: 1, name: 'next' }), { mode: 'exact' })
  const host = new CountedHost()
  const polite = host.limited(one.limiter)
  await polite('http://a/0')
  const client = new AbortController()
  const gone = assert.rejects(polite('http://a/gone', { signal: client.signal }), /gone/)
  const next = polite('http://a/next')
  const before = one.limiter.stats().chargedTokens
  await until('it is booked', () => one.limiter.stats().chargedTokens > before)
  client.abort(new Error('gone'))
  await gone
  await next
  assert.deepEqual(host.paths, ['/0', '/next'])
  assert.equal(one.limiter.stats().chargedTokens, before + 1)
})

test('one of a higher priority that comes while a token is asked for goes first, and one token is charged', async () => {
  await using one = await shared.member(tokenBucket({ limit: 1, window: '1h', name: 'priority' }), { mode: 'exact' })
  const host = new CountedHost()
  const polite = host.limited(one.limiter, { priority: ({ url }) => Number(url.searchParams.get('p')) })
  const calls = await shared.withFault({ kind: 'latency', delayMs: 20 }, async () => {
    const waiting = [polite('http://a/low?p=0')]
    const { pieces } = shared.proxy
    await until('it is asked for', () => shared.proxy.pieces > pieces)
    waiting.push(polite('http://a/high?p=9'))
    await until('one has gone', () => host.paths.length > 0)
    return waiting
  })
  assert.deepEqual(host.paths, ['/high'])
  assert.equal(one.limiter.stats().admittedTokens, 1)
  polite.close()
  await Promise.allSettled(calls)
})

test('a token that was booked when the host asked for a pause is for another process', async () => {
  const policy = tokenBucket({ limit: 1, window: '1h', name: 'paused' })
  await using one = await shared.member(policy, { mode: 'exact' })
  await using other = await shared.member(policy, { mode: 'exact' })
  let answer = (_: Response): void => undefined
  const host = new CountedHost(() => new Promise((resolve) => (answer = resolve)))
  const polite = host.limited(one.limiter, { attempts: 1 })
  const first = polite('http://a/1')
  await until('it has gone', () => host.paths.length === 1)
  const second = polite('http://a/2')
  await until('it is booked', async () => (await other.limiter.peek('a')).retryAfterMs > HOUR_MS)
  answer(new Response(null, { status: 429, headers: { 'Retry-After': '60' } }))
  assert.equal((await first).status, 429)
  await until('it has come back', async () => (await other.limiter.peek('a')).retryAfterMs <= HOUR_MS)
  polite.close()
  await assert.rejects(second, { code: 'CLOSED' })
})

test('two processes never have more under way than there are places, which come back with bodies, failures and aborts', async () => {
  const policy = concurrency({ limit: 2, ttl: '1m', name: 'places' })
  await using one = await shared.member(policy, {})
  await using other = await shared.member(policy, {})
  let open = 0
  let most = 0
  const host = new CountedHost(async (path) => {
    most = Math.max(most, ++open)
    await new Promise((resolve) => setImmediate(resolve))
    if (path.endsWith('/bad')) {
      open--
      throw new Error('bad')
    }
    return new Response('body')
  })
  const client = new AbortController()
  const calls = [one, other].flatMap(({ limiter }) => {
    const polite = host.limited(limiter)
    return ['1', 'bad', '2', 'gone', '3'].map(async (path) => {
      const response = await polite(`http://a/${path}`, path === 'gone' ? { signal: client.signal } : undefined)
      open--
      await response.text()
    })
  })
  client.abort()
  const ends = await Promise.allSettled(calls)
  assert.equal(ends.filter(({ status }) => status === 'fulfilled').length, 6)
  assert.ok(most <= 2, `${most} at once`)
  await until('all places are free', async () => (await one.limiter.peek('a')).remaining === 2)
})

test('what is leased costs few calls', async () => {
  await using one = await shared.member(tokenBucket({ limit: 2_000, window: '1s', name: 'leased' }), { mode: 'leased' })
  const host = new CountedHost()
  const polite = host.limited(one.limiter)
  await shared.withFault({ kind: 'latency', delayMs: 2 }, async () => {
    const caller = async (): Promise<void> => {
      for (let i = 0; i < 100; i++) await polite('http://a/')
    }
    await Promise.all(Array.from({ length: 10 }, caller))
  })
  assert.equal(host.paths.length, 1_000)
  assert.ok(one.limiter.stats().storeCalls < 500, `${one.limiter.stats().storeCalls} calls`)
})

test('a redirect to another host is charged there; a store that forgets its scripts is no fault', async () => {
  await using one = await shared.member(tokenBucket({ limit: 10, window: '1h', name: 'elsewhere' }), { mode: 'exact' })
  const host = new CountedHost((path) => {
    const there = { url: { value: 'http://b/here' }, redirected: { value: path === '/moved' } }
    return Object.defineProperties(new Response('ok'), there)
  })
  const polite = host.limited(one.limiter)
  await polite('http://a/1')
  await shared.server.ask('SCRIPT', 'FLUSH')
  await polite('http://a/moved')
  await until('it is charged', async () => (await one.limiter.peek('b')).remaining === 9)
  assert.equal((await one.limiter.peek('a')).remaining, 8)
})

test('over processes of a machine the order is kept, and an abort leaves nothing spent', async () => {
  const { clock, limiter } = fleet(gcra({ limit: 10, window: '1s', burst: 1 }))
  const host = new CountedHost()
  const polite = limitedFetch(host.fetch, { limiter, clock })
  const client = new AbortController()
  const calls = [0, 1, 2].map((i) => polite(`http://a/${i}`))
  const gone = assert.rejects(polite('http://a/gone', { signal: client.signal }), /gone/)
  calls.push(polite('http://a/3'))
  for (let step = 0; step < 60; step++) {
    if (step === 25) client.abort(new Error('gone'))
    await turns()
    clock.advance(10)
  }
  await Promise.all([...calls, gone])
  assert.deepEqual(host.paths, ['/0', '/1', '/2', '/3'])
  assert.equal((await limiter.peek('a')).remaining, 1)
  const waiting = assert.rejects(Promise.all([polite('http://a/4'), polite('http://a/5')]), { name: 'StoreError', code: 'CLOSED' })
  await turns()
  limiter.close()
  await waiting
})

describe('limited fetch in fleet', () => {
  // Calls of a host by processes that share its budget in Redis. Nothing of the budgets by the hour comes back while a test runs.

  /** Of what is cut off on purpose. */
  const SHORT_MS = 300
  const MODES = ['exact', 'leased'] as const

  let shared: OutboundFleet
  before(async () => {
    shared = await OutboundFleet.start()
  })
  after(() => shared.stop())

  for (const mode of MODES) {
    const inTime = mode === 'leased' ? test : longTest
    const inOutage = (outage: 'open' | 'closed') => ({ mode, outage, timeout: SHORT_MS })

    inTime(`${mode}: two processes keep one budget, each in the order of its calls`, async () => {
      const policy = tokenBucket({ limit: 50, window: '1s', burst: 5, name: `shared ${mode}` })
      await using one = await shared.member(policy, { mode })
      await using other = await shared.member(policy, { mode })
      const host = new CountedHost()
      const fromMs = performance.now()
      const sides = [one, other].map(({ limiter }) => host.limited(limiter))
      const calls = sides.flatMap((polite, side) => Array.from({ length: 30 }, (_, i) => polite(`http://a/${side}/${i}`)))
      await Promise.all(calls)
      for (const side of [0, 1]) {
        const own = host.paths.filter((path) => path.startsWith(`/${side}/`))
        assert.deepEqual(
          own,
          Array.from({ length: 30 }, (_, i) => `/${side}/${i}`),
        )
      }
      for (const [i, atMs] of host.times.entries()) {
        assert.ok(i + 1 <= 5 + (50 * (atMs - fromMs)) / 1000 + 1, `the ${i + 1}th after ${atMs - fromMs} ms`)
      }
    })

    inTime(`${mode}: with maxWait 0 a request goes if there is a token, else not at all`, async () => {
      await using one = await shared.member(tokenBucket({ limit: 2, window: '1h', name: `hasty ${mode}` }), { mode })
      const host = new CountedHost()
      const polite = host.limited(one.limiter, { maxWait: 0 })
      const calls = await shared.withFault({ kind: 'latency', delayMs: 5 }, () =>
        Promise.allSettled([1, 2, 3, 4].map((i) => polite(`http://a/${i}`))),
      )
      assert.deepEqual(
        calls.map((call) => (call.status === 'rejected' ? call.reason.code : call.value.status)),
        [200, 200, 'WAIT_TOO_LONG', 'WAIT_TOO_LONG'],
      )
    })

    inTime(`${mode}: as long as there are tokens no request waits for the round trip of another`, async () => {
      await using one = await shared.member(tokenBucket({ limit: 400, window: '1h', name: `wide ${mode}` }), { mode })
      const host = new CountedHost()
      const polite = host.limited(one.limiter)
      const fromMs = performance.now()
      await shared.withFault({ kind: 'latency', delayMs: 10 }, () =>
        Promise.all(Array.from({ length: 300 }, (_, i) => polite(`http://a/${i}`))),
      )
      // One after another they would take six seconds.
      assert.ok(performance.now() - fromMs < 3_000, `${performance.now() - fromMs} ms`)
      assert.equal(host.paths.length, 300)
    })

    inTime(`${mode}: an outage without a share is waited for, and reported to requests that do not wait as long`, async () => {
      await using one = await shared.member(tokenBucket({ limit: 100, window: '1s', name: `closed ${mode}` }), inOutage('closed'))
      const host = new CountedHost()
      const polite = host.limited(one.limiter)
      assert.equal((await polite('http://a/0')).status, 200)
      const calls = await shared.withFault({ kind: 'cut' }, async () => {
        await untilOut(one.limiter)
        const { outageDecisions } = one.limiter.stats()
        const waiting = [1, 2, 3, 4, 5].map((i) => polite(`http://a/${i}`))
        await assert.rejects(host.limited(one.limiter, { maxWait: 20 })('http://a/'), { name: 'OutboundError', code: 'OUTAGE' })
        await assert.rejects(host.limited(one.limiter, { maxWait: 0 })('http://a/'), { name: 'OutboundError', code: 'OUTAGE' })
        await until('they have asked again', () => one.limiter.stats().outageDecisions > outageDecisions + 4)
        assert.equal(host.paths.length, 1)
        return waiting
      })
      assert.ok((await Promise.all(calls)).every(({ status }) => status === 200))
    })

    inTime(`${mode}: in an outage all go where all may`, async () => {
      await using one = await shared.member(tokenBucket({ limit: 1, window: '1h', name: `open ${mode}` }), inOutage('open'))
      const host = new CountedHost()
      const polite = host.limited(one.limiter)
      const calls = [0, 1, 2, 3, 4, 5].map((i) => polite(`http://a/${i}`))
      await until('the first has gone', () => host.paths.length === 1)
      await shared.withFault({ kind: 'cut' }, async () => {
        await untilOut(one.limiter)
        calls.push(polite('http://b/'))
        // A booked request sleeps for the time that the store returned.
        assert.equal((await (calls.at(-1) as Promise<Response>)).status, 200)
      })
      polite.close()
      await Promise.allSettled(calls)
    })

    inTime(`${mode}: requests that wait for a share use the whole budget once the store is back`, async () => {
      const policy = tokenBucket({ limit: 10, window: '1s', burst: 1, name: `local ${mode}` })
      await using one = await shared.member(policy, { mode, share: 0.001, timeout: SHORT_MS })
      const host = new CountedHost()
      const polite = host.limited(one.limiter)
      const calls = await shared.withFault({ kind: 'cut' }, async () => {
        await untilOut(one.limiter)
        const waiting = [1, 2, 3, 4, 5].map((i) => polite(`http://a/${i}`))
        const { outageDecisions } = one.limiter.stats()
        await until('the share is spent', () => one.limiter.stats().outageDecisions > outageDecisions || host.paths.length > 0)
        return waiting
      })
      const fromMs = performance.now()
      // A token of the share comes after 100 seconds.
      await Promise.all(calls)
      assert.ok(performance.now() - fromMs < 20_000)
    })

    inTime(`${mode}: when the limiter is closed all waiting requests are rejected`, async () => {
      await using one = await shared.member(tokenBucket({ limit: 1, window: '1h', name: `closing ${mode}` }), { mode })
      const host = new CountedHost()
      const polite = host.limited(one.limiter)
      await polite('http://a/0')
      const calls = [1, 2, 3].map((i) => assert.rejects(polite(`http://a/${i}`), { name: 'StoreError', code: 'CLOSED' }))
      await until('one has asked', async () => ((await one.limiter.peek('a')) as { retryAfterMs: number }).retryAfterMs > 0)
      one.limiter.close()
      await Promise.all(calls)
    })
  }
})
