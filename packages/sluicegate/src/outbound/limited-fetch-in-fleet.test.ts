import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { longTest, until } from 'sluicegate-testkit'
import { CountedHost, OutboundFleet, untilOut } from 'sluicegate-testkit/outbound/outbound-fleet.js'
import { tokenBucket } from '../policy/single-policy.js'

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
    await using one = await shared.member(policy, { mode, localShare: 0.001, timeout: SHORT_MS })
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
