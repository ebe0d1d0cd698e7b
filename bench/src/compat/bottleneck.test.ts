import assert from 'node:assert/strict'
import { test } from 'node:test'
import { allOf, concurrency, createLimiter, createQueue, fixedWindow, gcra, tokenBucket } from 'sluicegate'
import { until } from 'sluicegate-testkit'
import { requireRival } from '../rivals.js'

// The documented examples of Bottleneck, each beside its translation in docs/moving-from-bottleneck.md: the same jobs run in the same order and end alike.

type Job = () => unknown
interface Theirs {
  schedule<Result>(options: object, fn: () => Result): Promise<Awaited<Result>>
  schedule<Result>(fn: () => Result): Promise<Awaited<Result>>
  wrap<Args extends unknown[], Result>(fn: (...args: Args) => Result): (...args: Args) => Promise<Awaited<Result>>
  counts(): { readonly RECEIVED: number }
  stop(options?: object): Promise<void>
  disconnect(): Promise<void>
}
const Bottleneck = requireRival('bottleneck') as {
  new (options: object): Theirs
  readonly strategy: Readonly<Record<'LEAK' | 'OVERFLOW' | 'OVERFLOW_PRIORITY', number>>
  readonly Group: new (options: object) => { key(key: string): Theirs }
}
const { default: PQueue } = requireRival('p-queue') as {
  default: new (
    options: object,
  ) => { add<Result>(fn: () => Result, options?: object): Promise<Result>; start(): void; pause(): void; onIdle(): Promise<void> }
}

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

/** What came of each job, by name, and the order in which they started. */
class Outcomes {
  readonly started: string[] = []
  readonly ended: Record<string, string> = {}

  job(name: string, ms = 5): Job {
    return async () => {
      this.started.push(name)
      await pause(ms)
      return name
    }
  }

  async of(name: string, run: Promise<unknown>): Promise<void> {
    this.ended[name] = await run.then(
      () => 'done',
      () => 'failed',
    )
  }
}

/**
 * Both run a job that ends with `end`: which of the first jobs Bottleneck starts before it reads priorities depends on its turns of the event
 * loop. `end` waits until Bottleneck has queued or dropped every job that it received.
 */
async function occupied(bottleneck: Theirs, run: (job: () => Promise<void>) => Promise<void>): Promise<{ end(): Promise<void> }> {
  let open: () => void = () => undefined
  const opened = new Promise<void>((resolve) => {
    open = resolve
  })
  const starts: Promise<void>[] = []
  const started = (start: (job: () => Promise<void>) => Promise<unknown>): Promise<unknown> => {
    let isStarted: () => void = () => undefined
    starts.push(new Promise((resolve) => (isStarted = resolve)))
    return start(() => {
      isStarted()
      return opened
    })
  }
  const busy = [started((job) => bottleneck.schedule(job)), started(run)]
  await Promise.all(starts)
  return {
    async end() {
      await pause(20)
      await until('Bottleneck has queued or dropped what it received', () => bottleneck.counts().RECEIVED === 0)
      open()
      await Promise.all(busy)
    },
  }
}

/** Any rate: what a limit of jobs at once needs beside it. */
const FREELY = tokenBucket({ limit: 1_000_000, window: '1s' })

test('minTime: jobs one after another, never closer than that', async () => {
  const times = { theirs: [] as number[], ours: [] as number[] }
  const theirs = new Bottleneck({ minTime: 40 })
  using ours = createLimiter(gcra({ limit: 1, window: 40, burst: 1 }))
  const beforeMs = performance.now()
  await Promise.all([
    ...[1, 2, 3, 4].map(() => theirs.schedule(() => times.theirs.push(performance.now() - beforeMs))),
    ...[1, 2, 3, 4].map(() => ours.run('service', () => times.ours.push(performance.now() - beforeMs))),
  ])
  // The first was admitted after `beforeMs`, however late its function began.
  for (const [, , , lastMs] of Object.values(times)) assert.ok((lastMs as number) >= 3 * 40 - 2, JSON.stringify(times))
})

test('maxConcurrent with priorities: the same order, with the sign turned round', async () => {
  const names = ['p5', 'p9', 'p0', 'p4', 'p5 again']
  const priorities = [5, 9, 0, 4, 5]
  const [theirs, ours] = [new Outcomes(), new Outcomes()]
  const bottleneck = new Bottleneck({ maxConcurrent: 1 })
  using limiter = createLimiter(FREELY)
  const queue = createQueue(limiter, { concurrency: 1 })
  const busy = await occupied(bottleneck, (job) => queue.run('service', job))
  const runs = [
    ...names.map((name, i) => theirs.of(name, bottleneck.schedule({ priority: priorities[i] }, theirs.job(name)))),
    ...names.map((name, i) => ours.of(name, queue.run('service', ours.job(name), { priority: 5 - (priorities[i] as number) }))),
  ]
  await busy.end()
  await Promise.all(runs)
  assert.deepEqual(ours, theirs)
  assert.deepEqual(ours.started, ['p0', 'p4', 'p5', 'p5 again', 'p9'])
})

for (const [strategy, overflow] of [
  ['OVERFLOW', 'refuse-newest'],
  ['LEAK', 'drop-oldest'],
  ['OVERFLOW_PRIORITY', 'drop-lowest-priority'],
] as const) {
  for (const priorities of [
    [5, 5, 5, 5, 5, 5],
    [5, 9, 5, 0, 9, 4],
    [5, 4, 3, 2, 1, 0],
    [0, 1, 2, 3, 4, 5],
  ]) {
    test(`highWater: ${strategy} keeps and drops what ${overflow} does, at priorities ${priorities}`, async () => {
      const [theirs, ours] = [new Outcomes(), new Outcomes()]
      const bottleneck = new Bottleneck({ maxConcurrent: 1, highWater: 2, strategy: Bottleneck.strategy[strategy] })
      using limiter = createLimiter(FREELY)
      const queue = createQueue(limiter, { concurrency: 1, maxWaiting: 2, overflow })
      const busy = await occupied(bottleneck, (job) => queue.run('service', job))
      const all = (outcomes: Outcomes, run: (job: Job, priority: number) => Promise<unknown>): Promise<unknown> =>
        Promise.all(priorities.map((priority, i) => outcomes.of(`job ${i}`, run(outcomes.job(`job ${i}`), priority))))
      const runs = [
        all(theirs, (job, priority) => bottleneck.schedule({ priority }, job)),
        all(ours, (job, priority) => queue.run('service', job, { priority: -priority })),
      ]
      await busy.end()
      await Promise.all(runs)
      assert.deepEqual(ours, theirs)
    })
  }
}

test('expiration: a job that runs too long fails, and the next one starts', async () => {
  const [theirs, ours] = [new Outcomes(), new Outcomes()]
  const bottleneck = new Bottleneck({ maxConcurrent: 1 })
  using limiter = createLimiter(FREELY)
  const queue = createQueue(limiter, { concurrency: 1 })
  await Promise.all([
    theirs.of('long', bottleneck.schedule({ expiration: 30 }, theirs.job('long', 300))),
    theirs.of('next', bottleneck.schedule(theirs.job('next'))),
    ours.of('long', queue.run('service', ours.job('long', 300), { timeout: 30 })),
    ours.of('next', queue.run('service', ours.job('next'))),
  ])
  assert.deepEqual(ours, theirs)
  assert.deepEqual(ours.ended, { long: 'failed', next: 'done' })
})

test('reservoir: N jobs at once and no more until the window ends', async (t) => {
  const [theirs, ours] = [new Outcomes(), new Outcomes()]
  const bottleneck = new Bottleneck({ reservoir: 3, reservoirRefreshAmount: 3, reservoirRefreshInterval: 86_400_000 })
  t.after(() => bottleneck.disconnect())
  using limiter = createLimiter(fixedWindow({ limit: 3, window: '1d' }))
  const names = ['a', 'b', 'c', 'd', 'e']
  const runs = names.flatMap((name) => [
    theirs.of(name, bottleneck.schedule(theirs.job(name))),
    ours.of(name, limiter.run('service', ours.job(name))),
  ])
  await until('both have run what may start', () => [theirs, ours].every(({ ended }) => Object.keys(ended).length >= 3))
  await pause(60)
  assert.deepEqual(ours, theirs)
  assert.deepEqual(ours.started, ['a', 'b', 'c'])
  await bottleneck.stop()
  limiter.close()
  await Promise.all(runs)
  assert.deepEqual(ours, theirs)
})

test('Shopify: a reservoir that grows is a token bucket, beside places and a least distance', async () => {
  const ours = new Outcomes()
  using limiter = createLimiter(
    allOf([
      tokenBucket({ limit: 2, window: '1s', burst: 40 }),
      gcra({ limit: 1, window: 4, burst: 1 }),
      concurrency({ limit: 5, ttl: '1m' }),
    ]),
  )
  const names = Array.from({ length: 20 }, (_, i) => `job ${i}`)
  await Promise.all(names.map((name) => ours.of(name, limiter.run('shop', ours.job(name)))))
  assert.deepEqual(ours.started, names)
})

test('weight: a job of weight 2 takes two of the places', async () => {
  const [theirs, ours] = [new Outcomes(), new Outcomes()]
  const bottleneck = new Bottleneck({ maxConcurrent: 3 })
  using limiter = createLimiter(concurrency({ limit: 3, ttl: '1m' }))
  const weights = [2, 2, 1, 1, 3]
  await Promise.all(weights.map((weight, i) => theirs.of(`${i}`, bottleneck.schedule({ weight }, theirs.job(`${i}`, 20)))))
  await Promise.all(weights.map((cost, i) => ours.of(`${i}`, limiter.run('service', ours.job(`${i}`, 20), { cost }))))
  assert.deepEqual(ours, theirs)
})

test('wrap: arguments, results and errors go through', async () => {
  const add = async (a: number, b: number): Promise<number> => {
    if (a < 0) throw new RangeError('negative')
    return a + b
  }
  const bottleneck = new Bottleneck({ maxConcurrent: 1 })
  using limiter = createLimiter(FREELY)
  const queue = createQueue(limiter, { concurrency: 1 })
  for (const wrapped of [bottleneck.wrap(add), queue.wrap(add)]) {
    assert.equal(await wrapped(1, 2), 3)
    await assert.rejects(wrapped(-1, 2), RangeError)
  }
})

test('a group: each key has its own limit', async () => {
  const [theirs, ours] = [new Outcomes(), new Outcomes()]
  const group = new Bottleneck.Group({ maxConcurrent: 1, minTime: 20 })
  using limiter = createLimiter(allOf([gcra({ limit: 1, window: 20, burst: 1 }), concurrency({ limit: 1, ttl: '1m' })]))
  const jobs = ['a', 'b', 'a', 'b'].map((key, i) => ({ key, name: `${key}${i}` }))
  await Promise.all(jobs.map(({ key, name }) => theirs.of(name, group.key(key).schedule(theirs.job(name)))))
  await Promise.all(jobs.map(({ key, name }) => ours.of(name, limiter.run(key, ours.job(name)))))
  assert.deepEqual(ours.ended, theirs.ended)
  // Two keys know nothing of each other: which of them is first is up to timers.
  for (const key of ['a', 'b']) {
    const startedOf = ({ started }: Outcomes): readonly string[] => started.filter((name) => name.startsWith(key))
    assert.deepEqual(startedOf(ours), startedOf(theirs))
  }
  assert.deepEqual([...ours.started].sort(), ['a0', 'a2', 'b1', 'b3'])
})

test('p-queue: concurrency, priority, pause and start, onIdle', async () => {
  const [theirs, ours] = [new Outcomes(), new Outcomes()]
  const queue = new PQueue({ concurrency: 2, autoStart: false })
  using limiter = createLimiter(FREELY)
  const jobs = createQueue(limiter, { concurrency: 2 })
  jobs.pause()
  const priorities = [0, 0, 2, 1, 0]
  for (const [i, priority] of priorities.entries()) {
    void theirs.of(`${i}`, queue.add(theirs.job(`${i}`), { priority }))
    void ours.of(`${i}`, jobs.run('service', ours.job(`${i}`), { priority }))
  }
  await pause(20)
  assert.deepEqual([theirs.started, ours.started], [[], []])
  queue.start()
  jobs.resume()
  await Promise.all([queue.onIdle(), jobs.onIdle()])
  await pause(5)
  assert.deepEqual(ours, theirs)
  assert.deepEqual(ours.started, ['2', '3', '0', '1', '4'])
})
