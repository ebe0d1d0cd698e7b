import assert from 'node:assert/strict'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { test } from 'node:test'
import { type Admission, firstOver, type PolicySpec, policyOf, Random } from 'sluicegate-testkit'
import type { ChannelMessages } from '../../decision/diagnostics.js'
import type { Permit } from '../../decision/permit.js'
import { allOf, concurrency, fixedWindow, manualClock, tokenBucket } from '../../index.js'
import { GivenShare } from './local-share.js'
import { Outage } from './outage.js'
import { shareOfPolicy } from './share-of-policy.js'

const RATE = tokenBucket({ limit: 100, window: '1s', burst: 100, name: 'rate' })
const TWO = allOf([RATE, fixedWindow({ limit: 1000, window: '1m', name: 'minute' })])
const MODES = ['local', 'open', 'closed'] as const

test('open lets all pass that could pass, closed nothing; both say that it is an outage', () => {
  const clock = manualClock()
  assert.deepEqual(new Outage('open', RATE, new GivenShare(1), clock).take('k', 100, 0), {
    allowed: true,
    limit: 100,
    remaining: 0,
    retryAfterMs: 0,
    resetAfterMs: 0,
    policy: 'rate',
    source: 'outage',
    spent: 0,
  })
  const denied = new Outage('closed', RATE, new GivenShare(0.1), clock).take('k', 1, 73.2)
  assert.deepEqual([denied.allowed, denied.retryAfterMs, denied.source], [false, 74, 'outage'])
})

test('closed says to come back with the next probe, in a millisecond at the earliest', () => {
  const outage = new Outage('closed', RATE, new GivenShare(0.1), manualClock())
  assert.deepEqual(
    [0, 0.5, 1, 1234.5].map((ms) => outage.take('k', 1, ms).retryAfterMs),
    [1, 1, 1, 1235],
  )
})

test('calls under way when a limiter is closed are decided without a share, and none is rejected', () => {
  for (const mode of MODES) {
    for (const policy of [RATE, TWO]) {
      const outage = new Outage(mode, policy, new GivenShare(0.1), manualClock())
      outage.take('k', 1, 0)
      outage.close()
      const [{ allowed, source }, peeked] = [outage.take('k', 1, 0), outage.peek('k', 1, 0)]
      assert.deepEqual([allowed, peeked.allowed, source], [mode === 'open', mode === 'open', 'outage'])
    }
  }
})

for (const mode of MODES) {
  test(`${mode}: a cost that can never pass is denied as impossible, and one above the share is not`, () => {
    for (const policy of [RATE, TWO]) {
      const outage = new Outage(mode, policy, new GivenShare(0.1), manualClock())
      const impossible = outage.take('k', 101, 50)
      assert.deepEqual([impossible.allowed, impossible.retryAfterMs, impossible.source], [false, Number.POSITIVE_INFINITY, 'outage'])
      const possible = outage.take('k', 11, 50)
      assert.deepEqual([possible.allowed, possible.retryAfterMs], mode === 'open' ? [true, 0] : [false, 50])
      assert.equal(outage.peek('k', 101, 50).retryAfterMs, Number.POSITIVE_INFINITY)
    }
  })

  test(`${mode}: the decision of allOf has its parts, all of an outage`, () => {
    const { parts = [], source } = new Outage(mode, TWO, new GivenShare(0.1), manualClock()).take('k', 1, 50)
    assert.deepEqual(
      [source, ...parts.map((part) => `${part.source} ${part.policy} ${part.limit}`)],
      ['outage', 'outage rate 100', 'outage minute 1000'],
    )
  })

  test(`${mode}: a permit can be released and renewed like one of the store`, async () => {
    const outage = new Outage(mode, concurrency({ limit: 20, ttl: '30s' }), new GivenShare(0.1), manualClock())
    const permit = outage.take('k', 1, 50) as Permit<'later'>
    assert.equal(permit.allowed, mode !== 'closed')
    assert.equal(await permit.heartbeat(), mode !== 'closed')
    assert.equal(await permit.release(), mode !== 'closed')
    assert.equal(await permit.release(), false)
  })
}

test('local gives back a place as soon as its permit is released', async () => {
  const outage = new Outage('local', concurrency({ limit: 20, ttl: '30s' }), new GivenShare(0.1), manualClock())
  const [first, second, third] = [1, 2, 3].map(() => outage.take('k', 1, 50) as Permit<'later'>)
  assert.deepEqual([first?.allowed, second?.allowed, third?.allowed], [true, true, false])
  await first?.release()
  assert.equal(outage.take('k', 1, 50).allowed, true)
})

const SPECS: readonly PolicySpec[] = [
  { algorithm: 'token-bucket', limit: 100, windowMs: 1000, burst: 100 },
  { algorithm: 'gcra', limit: 7, windowMs: 1000, burst: 3 },
  { algorithm: 'fixed-window', limit: 1000, windowMs: 1000 },
  { algorithm: 'sliding-window', limit: 90, windowMs: 500 },
  { algorithm: 'sliding-log', limit: 50, windowMs: 1000 },
]

for (const spec of SPECS) {
  test(`${spec.algorithm}: processes without a store admit at most the sum of their shares`, () => {
    const share = 0.1
    for (const processes of [1, 3, 10, 25]) {
      const clock = manualClock(1_000_000)
      const fleet = Array.from({ length: processes }, () => new Outage('local', policyOf(spec), new GivenShare(share), clock))
      const admissions: Admission[] = []
      const random = new Random(processes)
      for (let i = 0; i < 3000; i++) {
        clock.advance(random.pick([0, 0.25, 1, 3]))
        const cost = random.pick([1, 1, 1, 2])
        if (random.pick(fleet).take('k', cost, 0).allowed) admissions.push({ atUs: Math.round(clock.nowMs() * 1000), cost })
      }
      const own = shareOfPolicy(policyOf(spec), share)
      const sum = {
        ...spec,
        limit: own.limit * processes,
        windowMs: own.windowMs,
        ...('burst' in spec && { burst: own.burst * processes }),
      }
      assert.ok(admissions.length > 0)
      assert.equal(firstOver(sum as PolicySpec, admissions), undefined)
      // With as many processes as there are shares that is no more than the policy.
      const isWhole = processes === 10 && own.limit > 1
      if (isWhole) assert.equal(firstOver(spec, admissions), undefined)
    }
  })
}

test('a denial is reported once, with source outage', async () => {
  const heard: ChannelMessages['sluicegate:denial'][] = []
  const listen = (event: unknown): void => void heard.push(event as ChannelMessages['sluicegate:denial'])
  subscribe('sluicegate:denial', listen)
  const outage = new Outage('local', RATE, new GivenShare(0.1), manualClock())
  outage.take('k', 10, 0)
  assert.equal(outage.take('k', 1, 0).allowed, false)
  await outage.wait({ key: 'k', cost: 1, maxWaitMs: 0, signal: undefined }, 0)
  unsubscribe('sluicegate:denial', listen)
  assert.deepEqual(heard, [], 'the limiter around it tells')
})

test('a wait gets tokens of the share when available, and an impossible cost is denied at once', async () => {
  const clock = manualClock()
  const outage = new Outage('local', RATE, new GivenShare(0.1), clock)
  outage.take('k', 10, 0)
  const waiting = outage.wait({ key: 'k', cost: 1, maxWaitMs: 1000, signal: undefined }, 50)
  clock.advance(100)
  const decision = await waiting
  assert.deepEqual([decision.allowed, decision.source], [true, 'outage'])
  const never = await outage.wait({ key: 'k', cost: 11, maxWaitMs: Number.POSITIVE_INFINITY, signal: undefined }, 50)
  assert.deepEqual([never.allowed, never.retryAfterMs], [false, 50])
  assert.deepEqual([...outage.settle(() => true)], [{ key: 'k', tokens: [10] }])
})

test('a wait for the share ends with its signal, and with the limiter', async () => {
  const outage = new Outage('local', RATE, new GivenShare(0.1), manualClock())
  outage.take('k', 10, 0)
  const controller = new AbortController()
  const aborted = outage.wait({ key: 'k', cost: 1, maxWaitMs: 1000, signal: controller.signal }, 0)
  const closed = outage.wait({ key: 'k', cost: 1, maxWaitMs: 1000, signal: undefined }, 0)
  controller.abort(new Error('enough'))
  await assert.rejects(aborted, /enough/)
  outage.close()
  await assert.rejects(closed, { code: 'CLOSED' })
})
