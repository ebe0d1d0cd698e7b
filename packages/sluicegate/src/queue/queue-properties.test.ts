import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { shortOrLong } from 'sluicegate-testkit'
import { microtasks } from 'sluicegate-testkit/turns.js'
import { concurrency, createLimiter, fixedWindow, gcra, manualClock, type Policy, slidingLog, tokenBucket } from '../index.js'
import { createQueue } from './create-queue.js'
import type { Overflow } from './queue-options.js'

// Random lives of a queue: whatever is run, aborted, paused and cleared, the policy and the bounds hold, and every promise settles.

const SEED = 20_261_122
const RUNS = shortOrLong(25, 60)
const START_MS = 1_760_000_000_000
const WINDOW_MS = 1000

const POLICIES: readonly Policy[] = [
  tokenBucket({ limit: 4, window: WINDOW_MS, burst: 6 }),
  gcra({ limit: 4, window: WINDOW_MS, burst: 2 }),
  fixedWindow({ limit: 4, window: WINDOW_MS }),
  slidingLog({ limit: 4, window: WINDOW_MS }),
  concurrency({ limit: 4, ttl: '1m' }),
]

interface Move {
  readonly kind: 'run' | 'advance' | 'finish' | 'abort' | 'pause' | 'resume' | 'clear'
  readonly key: string
  readonly cost: number
  readonly priority: number
  readonly ms: number
  readonly maxWaitMs: number | undefined
  readonly timeoutMs: number | undefined
  readonly which: number
}

interface Started {
  readonly key: string
  readonly cost: number
  readonly atMs: number
  endedMs: number
}

const moves = fc.array(
  fc.record<Move>({
    kind: fc.constantFrom(
      'run',
      'run',
      'run',
      'run',
      'advance',
      'advance',
      'finish',
      'finish',
      'abort',
      'pause',
      'resume',
      'resume',
      'clear',
    ),
    key: fc.constantFrom('a', 'b'),
    cost: fc.constantFrom(1, 1, 1, 2, 3),
    priority: fc.constantFrom(0, 0, 0, 1, -1),
    ms: fc.constantFrom(0, 1, 50, 250, 500, 1000, 3000),
    maxWaitMs: fc.constantFrom(undefined, undefined, undefined, 0, 300, 2000),
    timeoutMs: fc.constantFrom(undefined, undefined, 100, 5000),
    which: fc.nat({ max: 30 }),
  }),
  { minLength: 5, maxLength: 80 },
)

for (const policy of POLICIES) {
  test(`${policy.algorithm}: in ${RUNS} random lives of a queue nothing goes over the policy or the bounds, and all settles`, async () => {
    const settings = fc.record({
      places: fc.constantFrom(1, 2, 100),
      maxWaiting: fc.constantFrom(0, 3, 1000),
      overflow: fc.constantFrom<Overflow>('refuse-newest', 'drop-oldest', 'drop-lowest-priority'),
    })
    await fc.assert(
      fc.asyncProperty(settings, moves, async ({ places, maxWaiting, overflow }, life) => {
        await assertLife(policy, { concurrency: places, maxWaiting, overflow }, life)
      }),
      { numRuns: RUNS, seed: SEED },
    )
  })
}

async function assertLife(
  policy: Policy,
  bounds: { concurrency: number; maxWaiting: number; overflow: Overflow },
  life: readonly Move[],
): Promise<void> {
  const clock = manualClock(START_MS)
  const limiter = createLimiter(policy, { clock, maxKeys: 100 })
  const queue = createQueue(limiter, bounds)
  const started: Started[] = []
  const running = new Set<() => void>()
  const aborts: AbortController[] = []
  const outcomes: Promise<unknown>[] = []
  let settledCount = 0
  let asked = 0

  const run = ({ key, cost, priority, maxWaitMs, timeoutMs }: Move): void => {
    const controller = new AbortController()
    aborts.push(controller)
    asked++
    const job = (): Promise<void> =>
      new Promise((resolve) => {
        const one: Started = { key, cost, atMs: clock.nowMs(), endedMs: Number.POSITIVE_INFINITY }
        started.push(one)
        const end = (): void => {
          one.endedMs = Math.min(one.endedMs, clock.nowMs())
          running.delete(end)
          resolve()
        }
        running.add(end)
        // Its place is free when its time is over.
        const late = (): void => {
          one.endedMs = Math.min(one.endedMs, clock.nowMs())
        }
        if (timeoutMs !== undefined) clock.after(timeoutMs, late)
      })
    const options = {
      cost,
      priority,
      signal: controller.signal,
      ...(maxWaitMs !== undefined && { maxWait: maxWaitMs }),
      ...(timeoutMs !== undefined && { timeout: timeoutMs }),
    }
    outcomes.push(queue.run(key, job, options).then(count, count))
  }
  const count = (): void => void settledCount++

  for (const move of life) {
    if (move.kind === 'run') run(move)
    else if (move.kind === 'advance') clock.advance(move.ms)
    else if (move.kind === 'finish') [...running][move.which % Math.max(1, running.size)]?.()
    else if (move.kind === 'abort') aborts[move.which % Math.max(1, aborts.length)]?.abort(new Error('enough'))
    else if (move.kind === 'pause') queue.pause()
    else if (move.kind === 'resume') queue.resume()
    else queue.clear()
    await microtasks(60)
    const { queued, running: taken } = queue.stats()
    assert.ok(queued <= bounds.maxWaiting && taken <= bounds.concurrency, `${queued} wait, ${taken} run`)
  }

  // Everything can end: what waits gets its tokens, what runs is let go.
  queue.resume()
  for (let i = 0; settledCount < asked || running.size > 0; i++) {
    assert.ok(i < 400, `${asked - settledCount} of ${asked} jobs never settled`)
    for (const end of [...running]) end()
    clock.advance(WINDOW_MS / 4)
    await microtasks(60)
  }
  await Promise.all([...outcomes, queue.onIdle()])
  assertWithin(policy, started)
  // Nothing is left charged for ever: a minute later the key is full.
  clock.advance(60_000)
  for (const key of ['a', 'b']) assert.equal(limiter.peek(key).remaining, policy.burst)
  const { queued, running: left, keys, completed, failed, rejected } = queue.stats()
  assert.deepEqual([queued, left, keys, completed + failed + rejected], [0, 0, 0, asked])
  limiter.close()
}

/** Jobs that started, against the policy: each interval between two starts, or those that run at once. */
function assertWithin(policy: Policy, started: readonly Started[]): void {
  for (const key of ['a', 'b']) {
    const own = started.filter((one) => one.key === key)
    for (const [i, first] of own.entries()) {
      const during = own.slice(i)
      for (const last of during) {
        const cost = (of: readonly Started[]): number => of.reduce((sum, one) => sum + one.cost, 0)
        const spent = cost(during.filter((one) => one.atMs <= last.atMs))
        const lengthMs = last.atMs - first.atMs
        if (policy.algorithm === 'token-bucket' || policy.algorithm === 'gcra') {
          assert.ok(spent <= policy.burst + (policy.limit * lengthMs) / WINDOW_MS, `${spent} in ${lengthMs} ms`)
        } else if (policy.algorithm === 'sliding-log') {
          assert.ok(lengthMs >= WINDOW_MS || spent <= policy.limit, `${spent} in ${lengthMs} ms`)
        } else if (policy.algorithm === 'fixed-window') {
          const isSame = Math.floor(first.atMs / WINDOW_MS) === Math.floor(last.atMs / WINDOW_MS)
          assert.ok(!isSame || spent <= policy.limit, `${spent} in a window`)
        } else {
          assert.ok(cost(own.filter((one) => one.atMs <= last.atMs && one.endedMs > last.atMs)) <= policy.limit)
        }
      }
    }
  }
}
