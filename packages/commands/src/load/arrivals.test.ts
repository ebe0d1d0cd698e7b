import assert from 'node:assert/strict'
import { test } from 'node:test'
import { keysOf, zipfDistribution } from './key-choice.js'
import { LoadInterval } from './load-interval.js'
import type { LoadPlan } from './load-plan.js'
import { type ArrivalPlan, Arrivals, ErrorTexts, type LoadOutcome } from './load-plan.js'
import { type LoadAnswer, type LoadClock, LoadRun } from './load-run.js'

const ALONE = { index: 0, of: 1 }

function startsOf(plan: ArrivalPlan, count: number, share = ALONE): number[] {
  const arrivals = new Arrivals(plan, share, 1)
  return Array.from({ length: count }, () => arrivals.next())
}

test('constant arrivals are evenly spaced, and processes interleave', () => {
  assert.deepEqual(startsOf({ kind: 'constant', rate: 250 }, 4), [0, 4, 8, 12])
  assert.deepEqual(startsOf({ kind: 'constant', rate: 250 }, 3, { index: 1, of: 2 }), [4, 12, 20])
})

test('bursts come as often as the rate demands', () => {
  assert.deepEqual(startsOf({ kind: 'burst', rate: 100, size: 3 }, 7), [0, 0, 0, 30, 30, 30, 60])
})

test('a ramp has due at each time the integral of its rate', () => {
  for (const [fromRate, toRate] of [
    [0, 200],
    [200, 0],
    [50, 350],
    [100, 100],
  ] as const) {
    const overMs = 10_000
    for (const [n, atMs] of startsOf({ kind: 'ramp', fromRate, toRate, overMs }, ((fromRate + toRate) / 2) * 10 - 1).entries()) {
      const s = atMs / 1_000
      assert.ok(Math.abs(fromRate * s + ((toRate - fromRate) * s * s) / 20 - n) < 1e-6, `request ${n} at ${atMs} ms`)
    }
  }
  assert.equal(startsOf({ kind: 'ramp', fromRate: 10, toRate: 0, overMs: 1_000 }, 7).at(-1), Number.POSITIVE_INFINITY)
})

test('Poisson gaps have the mean and the variance of an exponential distribution, also as the sum of processes', () => {
  const starts = startsOf({ kind: 'poisson', rate: 1_000 }, 100_000)
  const gaps = starts.map((start, i) => start - (starts[i - 1] ?? 0))
  const mean = gaps.reduce((sum, gap) => sum + gap, 0) / gaps.length
  const variance = gaps.reduce((sum, gap) => sum + (gap - mean) ** 2, 0) / gaps.length
  assert.ok(Math.abs(mean - 1) < 0.02 && Math.abs(variance - 1) < 0.05, `${mean} ${variance}`)
  const [half = 0] = startsOf({ kind: 'poisson', rate: 1_000 }, 50_000, { index: 1, of: 2 }).slice(-1)
  assert.ok(Math.abs(half / 100_000 - 1) < 0.03)
})

test('Zipf ranks have the chances of the formula', () => {
  const [keys, exponent, draws] = [100, 1.2, 200_000]
  const harmonic = Array.from({ length: keys }, (_, i) => (i + 1) ** -exponent).reduce((sum, each) => sum + each, 0)
  const upTo = zipfDistribution(keys, exponent)
  for (let rank = 1; rank <= keys; rank++) {
    const chance = (upTo[rank - 1] as number) - (upTo[rank - 2] ?? 0)
    assert.ok(Math.abs(chance - rank ** -exponent / harmonic) < 1e-12)
  }
  assert.equal(upTo[keys - 1], 1)
  const next = keysOf({ kind: 'zipf', keys, exponent }, 3)
  const counts = new Map<string, number>()
  for (let i = 0; i < draws; i++) {
    const key = next()
    counts.set(key, (counts.get(key) ?? 0) + 1)
  }
  for (const rank of [1, 2, 10, 50]) {
    const expected = (draws * rank ** -exponent) / harmonic
    // Six standard deviations of a binomial count.
    assert.ok(Math.abs((counts.get(`key-${rank}`) ?? 0) - expected) < 6 * Math.sqrt(expected), `rank ${rank}`)
  }
})

/** A clock that stands still until it is moved to what waits. */
class ManualLoadClock implements LoadClock {
  ms = 0
  #atMs = Number.POSITIVE_INFINITY
  #wake: () => void = () => undefined

  nowMs(): number {
    return this.ms
  }

  wakeAt(atMs: number, wake: () => void): void {
    this.#atMs = atMs
    this.#wake = wake
  }

  /** Goes on to `toMs`, calling everything that is due on the way. */
  goTo(toMs: number): void {
    while (this.#atMs <= toMs) {
      this.ms = Math.max(this.ms, this.#atMs)
      this.#atMs = Number.POSITIVE_INFINITY
      this.#wake()
    }
    this.ms = toMs
  }
}

const PLAN: LoadPlan = {
  target: {
    kind: 'memory',
    url: 'memory',
    policy: undefined,
    cost: 1,
    connections: 1,
    token: undefined,
    config: undefined,
    throttle: undefined,
    envoy: undefined,
  },
  loop: { kind: 'open', arrivals: { kind: 'constant', rate: 100 } },
  keys: { kind: 'hot' },
  durationMs: 2_500,
  warmUpMs: 0,
  graceMs: 1_000,
  seed: 1,
  processes: 1,
  record: undefined,
}

test('every request is sent when it is due, and counts in the second of its answer', async () => {
  const clock = new ManualLoadClock()
  const answers: LoadAnswer[] = []
  const seconds: LoadInterval[] = []
  const target = { take: async (): Promise<LoadOutcome> => 'allowed', errors: new ErrorTexts(), close: async () => undefined }
  const watcher = {
    interval: (_: number, interval: LoadInterval) => seconds.push(interval),
    answer: (answer: LoadAnswer) => answers.push(answer),
  }
  const done = new LoadRun(PLAN, target, clock, watcher).run()
  for (let ms = 0; ms <= 2_500; ms++) {
    clock.goTo(ms)
    await Promise.resolve()
    await Promise.resolve()
  }
  await done
  assert.deepEqual(
    answers.map(({ intendedMs, sentMs }) => [intendedMs, sentMs]),
    Array.from({ length: 250 }, (_, i) => [i * 10, i * 10]),
  )
  assert.deepEqual(
    seconds.map(({ allowed }) => allowed),
    [100, 100, 50],
  )
})

test('requests that a late process sends late keep their intended starts', async () => {
  const clock = new ManualLoadClock()
  const answers: LoadAnswer[] = []
  const target = { take: async (): Promise<LoadOutcome> => 'denied', errors: new ErrorTexts(), close: async () => undefined }
  const total = new LoadInterval()
  const watcher = {
    interval: (_: number, interval: LoadInterval) => total.add(interval),
    answer: (answer: LoadAnswer) => answers.push(answer),
  }
  const done = new LoadRun({ ...PLAN, durationMs: 1_000 }, target, clock, watcher).run()
  // The process sleeps for 500 ms.
  clock.ms = 500
  clock.goTo(500)
  await Promise.resolve()
  for (let ms = 501; ms <= 1_000; ms++) {
    clock.goTo(ms)
    await Promise.resolve()
  }
  await done
  assert.deepEqual(
    answers.map(({ intendedMs }) => intendedMs),
    Array.from({ length: 100 }, (_, i) => i * 10),
  )
  assert.equal(total.latency.maxValue > 480_000, true)
})

test('a warm-up goes over into the measured run without a pause, and its late answers do not count', async () => {
  const clock = new ManualLoadClock()
  const answers: LoadAnswer[] = []
  const keys: string[] = []
  const seconds: number[] = []
  const late: (() => void)[] = []
  let warmedUpAtMs = -1
  const target = {
    take: async (key: string): Promise<LoadOutcome> => {
      keys.push(key)
      // The last request of the warm-up is answered after it.
      if (clock.ms === 490) await new Promise<void>((resolve) => late.push(resolve))
      return 'allowed'
    },
    errors: new ErrorTexts(),
    close: async () => undefined,
  }
  const watcher = {
    interval: (_: number, interval: LoadInterval) => void seconds.push(interval.allowed),
    answer: (answer: LoadAnswer) => answers.push(answer),
    warmedUp: () => {
      warmedUpAtMs = clock.ms
    },
  }
  const plan = { ...PLAN, keys: { kind: 'uniform', keys: 1_000 }, warmUpMs: 500, durationMs: 1_000 } as const
  const done = new LoadRun(plan, target, clock, watcher).run()
  for (let ms = 0; ms <= 1_500; ms++) {
    clock.goTo(ms)
    if (ms === 700) for (const answer of late) answer()
    for (let turn = 0; turn < 4; turn++) await Promise.resolve()
  }
  await done
  assert.equal(warmedUpAtMs, 500)
  assert.deepEqual(
    answers.map(({ intendedMs }) => intendedMs),
    Array.from({ length: 100 }, (_, i) => 500 + i * 10),
  )
  assert.deepEqual([keys.length, seconds], [150, [100, 0]])
  assert.deepEqual(keys.slice(50, 100), keys.slice(0, 50))
})

test('a run that is stopped within its warm-up has measured nothing', async () => {
  const clock = new ManualLoadClock()
  const seconds: LoadInterval[] = []
  const target = { take: async (): Promise<LoadOutcome> => 'allowed', errors: new ErrorTexts(), close: async () => undefined }
  const run = new LoadRun({ ...PLAN, warmUpMs: 2_000 }, target, clock, { interval: (_, interval) => seconds.push(interval) })
  const done = run.run()
  for (let ms = 0; ms <= 100; ms++) {
    clock.goTo(ms)
    await Promise.resolve()
    await Promise.resolve()
  }
  run.stop()
  await done
  assert.deepEqual(
    seconds.map(({ sent, answered, unanswered }) => [sent, answered, unanswered]),
    [[0, 0, 0]],
  )
})
