import assert from 'node:assert/strict'
import { after, before, mock, test } from 'node:test'
import { everyNth, shortOrLong } from 'sluicegate-testkit'
import { FakeNet } from 'sluicegate-testkit/outbound/fake-net.js'
import { createLimiter } from '../create-limiter.js'
import { type HeaderOptions, type HeaderVersion, HeaderWriter } from '../headers/header-writer.js'
import type { Policy } from '../policy/policy.js'
import { fixedWindow, gcra, tokenBucket } from '../policy/single-policy.js'
import { limitedFetch } from './limited-fetch.js'

// The same jitter in every run.
before(() => mock.method(Math, 'random', () => 0.5))
after(() => mock.restoreAll())

const SECONDS = shortOrLong(14, 40)
const CALLERS = 30
const WARM_UP_MS = shortOrLong(5_000, 30_000)
const MEASURED_MS = shortOrLong(3_000, 12_000)
const BUCKET = tokenBucket({ limit: 40, window: '1s' })
const WINDOW = fixedWindow({ limit: 200, window: '5s' })
const POLICIES = [BUCKET, WINDOW].slice(0, shortOrLong(1, 2))

interface Course {
  /** Of what the policy allows, over all the time. */
  readonly share: number
  /** The same over the second half. */
  readonly lateShare: number
  /** Refusals per request in the second half. */
  readonly lateRefusals: number
}

/** Callers who never rest, of a host with that limit, 10 ms away. */
async function course(policy: Policy, version: HeaderVersion | 'silent', tell = (remaining: number): number => remaining): Promise<Course> {
  const counts = { passed: 0, latePassed: 0, lateRefused: 0 }
  let isLate = false
  const answer = (): Response => {
    const decision = limiter.take('client')
    if (decision.allowed) counts.passed++
    if (isLate) counts[decision.allowed ? 'latePassed' : 'lateRefused']++
    const headers = version === 'silent' ? [] : writer.write(policy, { ...decision, remaining: tell(decision.remaining) })
    return new Response(null, { status: decision.allowed ? 200 : 429, headers: headers as [string, string][] })
  }
  const net = new FakeNet(answer, 10)
  const limiter = createLimiter(policy, { clock: net.clock })
  const writer = new HeaderWriter({ version: version === 'silent' ? 'none' : version, nowMs: () => net.clock.nowMs() } as HeaderOptions)
  const polite = limitedFetch(net.fetch, { clock: net.clock, attempts: 100, maxTotal: Number.POSITIVE_INFINITY })
  let isOver = false
  const caller = async (): Promise<void> => {
    while (!isOver) await polite('http://a/')
  }
  const callers = Array.from({ length: CALLERS }, caller)
  await net.pass((SECONDS * 1000) / 2, 5)
  isLate = true
  await net.pass((SECONDS * 1000) / 2, 5)
  isOver = true
  await net.pass(10_000, 5)
  await Promise.all(callers)
  const allowed = (policy.limit * SECONDS * 1000) / policy.windowMs
  const { passed, latePassed, lateRefused } = counts
  return { share: passed / allowed, lateShare: latePassed / (allowed / 2), lateRefusals: lateRefused / (latePassed + lateRefused) }
}

for (const [i, version] of (['draft-11', 'draft-7', 'draft-6', 'x-ratelimit'] as const).entries()) {
  everyNth(i, 4)(`a host that announces its budget in ${version} is fully used and never has to refuse`, async () => {
    for (const policy of POLICIES) {
      const { share, lateShare, lateRefusals } = await course(policy, version)
      assert.ok(share >= 0.95 && lateShare >= 0.95, `${policy.name}: ${share}, ${lateShare}`)
      assert.equal(lateRefusals, 0, policy.name)
    }
  })
}

test('a small burst is no obstacle where the window is announced', async () => {
  const { share, lateRefusals } = await course(gcra({ limit: 40, window: '1s', burst: 4 }), 'draft-11')
  assert.ok(share >= 0.95, `${share}`)
  assert.equal(lateRefusals, 0)
})

for (const version of ['silent', 'none'] as const) {
  test(`a host that only refuses, ${version === 'none' ? 'with' : 'without'} Retry-After, gets nearly all that it allows and seldom has to refuse`, async () => {
    for (const policy of POLICIES) {
      const { share, lateShare, lateRefusals } = await course(policy, version)
      assert.ok(share >= 0.9 && lateShare >= 0.9, `${policy.name}: ${share}, ${lateShare}`)
      assert.ok(lateRefusals <= 0.01, `${policy.name}: ${lateRefusals}`)
    }
  })
}

test('a host that announces more than it has is found out by its refusals', async () => {
  const { share, lateShare, lateRefusals } = await course(BUCKET, 'draft-11', (remaining) => remaining * 3 + 100)
  assert.ok(share >= 0.9 && lateShare >= 0.9 && lateRefusals <= 0.01, `${share}, ${lateShare}, ${lateRefusals}`)
})

/** How many a second are sent to a host that answers like this, 10 ms away, after the warm-up. */
async function perSecond(statusOf: (number: number, nowMs: number) => number, headers: Record<string, string> = {}): Promise<number> {
  const net: FakeNet = new FakeNet((_, number) => new Response(null, { status: statusOf(number, net.clock.nowMs()), headers }), 10)
  const polite = limitedFetch(net.fetch, { clock: net.clock, maxTotal: Number.POSITIVE_INFINITY })
  let isOver = false
  const caller = async (): Promise<void> => {
    while (!isOver) await polite('http://a/')
  }
  const ends = Promise.allSettled(Array.from({ length: CALLERS }, caller))
  await net.pass(WARM_UP_MS, 10)
  const before = net.arrivals.length
  await net.pass(MEASURED_MS, 10)
  const sent = net.arrivals.length - before
  isOver = true
  polite.close()
  await net.pass(100, 10)
  await ends
  return (sent * 1000) / MEASURED_MS
}

test('scattered failures are no limit, a host that fails most of the time is spared, and Retry-After is obeyed', async () => {
  const every = (failing: (number: number) => boolean) => (number: number) => (failing(number) ? 503 : 200)
  assert.ok((await perSecond(every((number) => number % 25 === 0))) > 500)
  assert.ok((await perSecond(every((number) => number % 3 !== 0))) < 5)
  assert.ok(
    (await perSecond(
      every((number) => number % 25 === 0),
      { 'Retry-After': '1' },
    )) < 30,
  )
})

test('a host that refuses with a bare 503 is found out by how many they are', async () => {
  let clock = { nowMs: () => 0 }
  const limiter = createLimiter(BUCKET, { clock: { nowMs: () => clock.nowMs() } })
  const sent = await perSecond((_, nowMs) => {
    clock = { nowMs: () => nowMs }
    return limiter.take('client').allowed ? 200 : 503
  })
  assert.ok(sent > 35 && sent < 52, `${sent} a second of 40`)
})
