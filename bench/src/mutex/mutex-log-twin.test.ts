import assert from 'node:assert/strict'
import { test } from 'node:test'
import { crewFor, longTest, Random, shortOrLong } from 'sluicegate-testkit'
import type { Decision } from '../../../packages/sluicegate/dist/decision/decision.js'
import { manualClock, slidingLog } from '../../../packages/sluicegate/dist/index.js'
import { sum } from '../samples.js'
import { attachMutexLogTwin, createMutexLogTwin } from './mutex-log-twin.js'

const START_MS = 1_789_000_000_000
const ATTACH = { module: new URL('./mutex-log-twin.js', import.meta.url).href, name: 'attachMutexLogTwin' }

/** The same without a ring, a sum or a shortcut. */
class NaiveLog {
  private requests: { readonly atUs: number; readonly cost: number }[] = []
  private readonly limit: number
  private readonly windowUs: number

  constructor(limit: number, windowMs: number) {
    this.limit = limit
    this.windowUs = windowMs * 1000
  }

  take(cost: number, nowMs: number): Omit<Decision, 'policy' | 'source'> {
    const nowUs = Math.round(nowMs * 1000)
    this.requests = this.requests.filter(({ atUs }) => atUs + this.windowUs > nowUs)
    const allowed = this.used(nowUs) + cost <= this.limit
    const passesAtUs = [nowUs, ...this.requests.map(({ atUs }) => atUs + this.windowUs)].find((us) => this.used(us) + cost <= this.limit)
    if (allowed) this.requests.push({ atUs: nowUs, cost })
    const last = this.requests.at(-1)
    return {
      allowed,
      limit: this.limit,
      remaining: this.limit - this.used(nowUs),
      retryAfterMs: passesAtUs === undefined ? Number.POSITIVE_INFINITY : Math.ceil((passesAtUs - nowUs) / 1000),
      resetAfterMs: last === undefined ? 0 : Math.ceil((last.atUs + this.windowUs - nowUs) / 1000),
    }
  }

  private used(us: number): number {
    return this.requests.reduce((sum, { atUs, cost }) => (atUs + this.windowUs > us ? sum + cost : sum), 0)
  }
}

test('the mutex log decides as a plain list does, field by field, on both its ends', () => {
  for (const { limit, windowMs } of [
    { limit: 10, windowMs: 1000 },
    { limit: 1, windowMs: 1 },
    { limit: 7, windowMs: 60_000 },
    { limit: 100, windowMs: 2.5 },
  ]) {
    const clock = manualClock(START_MS)
    const policy = slidingLog({ limit, window: windowMs })
    const twin = createMutexLogTwin(policy, { clock, maxKeys: 1000 })
    const ends = [twin, attachMutexLogTwin(twin.handle())]
    const lists = new Map<string, NaiveLog>()
    const random = new Random(limit)
    for (let i = 0; i < shortOrLong(1_000, 5_000); i++) {
      const key = `key ${random.integer(1, 20)}`
      const cost = random.magnitude(1, limit + 1)
      const list = lists.get(key) ?? new NaiveLog(limit, windowMs)
      lists.set(key, list)
      const stepMs = random.pick([0, 0.001, (random.fraction() * windowMs) / limit, random.fraction() * windowMs])
      clock.set(Math.round((clock.nowMs() + stepMs) * 1000) / 1000)
      const { source, policy: name, ...answer } = random.pick(ends).take(key, cost)
      assert.deepEqual(answer, list.take(cost, clock.nowMs()), `${limit} in ${windowMs} ms, call ${i}`)
      assert.deepEqual([source, name], ['memory', policy.name])
    }
  }
})

test('a request that needs several tokens learns when the last of them comes back', () => {
  const clock = manualClock(START_MS)
  const twin = createMutexLogTwin(slidingLog({ limit: 5, window: '1s' }), { clock })
  for (const cost of [1, 2, 2]) {
    twin.take('k', cost)
    clock.advance(100)
  }
  assert.deepEqual(
    [1, 2, 3, 4, 5, 6].map((cost) => twin.take('k', cost).retryAfterMs),
    [700, 800, 800, 900, 900, Number.POSITIVE_INFINITY],
  )
})

test('the entry of a key whose requests have all expired goes to another, and no other does', () => {
  const clock = manualClock(START_MS)
  const twin = createMutexLogTwin(slidingLog({ limit: 1, window: '1s' }), { clock, maxKeys: 1 })
  for (let i = 0; i < 64; i++) assert.equal(twin.take(`key ${i}`).allowed, true)
  assert.deepEqual([twin.take('one more').allowed, twin.take('one more').retryAfterMs], [false, 1000])
  clock.advance(1000)
  assert.equal(twin.take('one more').allowed, true)
  assert.equal(twin.take('one more').allowed, false)
})

test('4 workers on one key of the mutex log admit exactly what has expired, round after round', async (t) => {
  const clock = manualClock(START_MS)
  const twin = createMutexLogTwin(slidingLog({ limit: 300, window: '1s' }), { clock, maxKeys: 10 })
  const crew = crewFor(t, 4, { handle: twin.handle(), attach: ATTACH })
  const list = new NaiveLog(300, 1000)
  const random = new Random(1)
  for (let round = 0; round < shortOrLong(20, 60); round++) {
    const rounds = random.integer(1, 60)
    const passed = (await crew.ask({ kind: 'take', keys: ['hot'], rounds })) as number[][]
    let expected = 0
    for (let i = 0; i < 4 * rounds; i++) if (list.take(1, clock.nowMs()).allowed) expected++
    assert.equal(sum(passed.flat()), expected, `round ${round}`)
    clock.advance(random.integer(1, 300))
  }
})

longTest('4 workers on the same new keys of the mutex log at once give each key its limit, no more and no less', async (t) => {
  const twin = createMutexLogTwin(slidingLog({ limit: 7, window: '1h' }), { clock: manualClock(START_MS), maxKeys: 4000 })
  const crew = crewFor(t, 4, { handle: twin.handle(), attach: ATTACH })
  const keys = Array.from({ length: shortOrLong(500, 2000) }, (_, i) => `key ${i}`)
  const passed = (await crew.ask({ kind: 'take', keys, rounds: 3 })) as number[][]
  assert.deepEqual(
    keys.filter((_, i) => sum(passed.map((byKey) => byKey[i] ?? 0)) !== 7),
    [],
  )
})
