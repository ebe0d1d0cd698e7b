import assert from 'node:assert/strict'
import { test } from 'node:test'
import { microtasks } from 'sluicegate-testkit/turns.js'
import { createLimiter, fixedWindow, levels, manualClock, tokenBucket } from '../index.js'
import type { RunningJob } from './queue-options.js'

const START_MS = 1_789_000_020_000

function made(limit = 100) {
  const clock = manualClock(START_MS)
  const limiter = createLimiter(fixedWindow({ limit, window: 'day' }), { clock })
  const advance = async (ms: number): Promise<void> => {
    clock.advance(ms)
    await microtasks(300)
  }
  return { clock, limiter, advance }
}

/** A job that runs until it is told to end. */
function openJob() {
  let end = (): void => {}
  let seen: RunningJob | undefined
  const fn = (job: RunningJob) => {
    seen = job
    return new Promise<void>((resolve) => {
      end = resolve
    })
  }
  return { fn, end: () => end(), job: () => seen as RunningJob }
}

test('a metered job has a hold, which is renewed while it runs and closed when it ends or fails', async () => {
  const { limiter, advance } = made()
  const open = openJob()
  const running = limiter.run('ada', open.fn, { cost: { expect: 40 } })
  assert.deepEqual([open.job().hold?.held, limiter.peek('ada').remaining], [40, 60])
  assert.equal(open.job().hold?.add(10), true)
  await advance(120_000)
  assert.equal(open.job().hold?.held, 30, 'eight times its ttl later')
  open.end()
  await running
  assert.equal(limiter.peek('ada').remaining, 90)
  const failing = limiter.run('ada', (job) => Promise.reject(new Error(`${job.hold?.add(5)}`)), { cost: { expect: 40 } })
  await assert.rejects(failing, /true/)
  assert.equal(limiter.peek('ada').remaining, 85)
  assert.equal(await limiter.run('ada', (job) => job.hold, { cost: 3 }), undefined, 'a cost in numbers has none')
})

test('settle closes a hold with the true cost', async () => {
  const { limiter } = made()
  await limiter.run('ada', (job) => job.settle(25), { cost: { expect: 10 } })
  assert.equal(limiter.peek('ada').remaining, 75)
})

test('jobs that do not fit beside what is held start in turn, as soon as one ends', async () => {
  const { limiter, advance } = made()
  const [first, second, third] = [openJob(), openJob(), openJob()]
  const runs = [first, second, third].map(({ fn }) => limiter.run('ada', fn, { cost: { expect: 60 } }))
  const numbered = limiter.run('ada', () => 'done', { cost: 1 })
  await microtasks(300)
  assert.deepEqual([limiter.queue.stats().running, limiter.queue.stats().queued], [1, 3], 'nobody overtakes')
  first.end()
  await microtasks(300)
  assert.equal(second.job().hold?.held, 60, 'at once')
  // Within what is held, of the next: the first that waits looks again by itself, though nobody of this queue ends.
  second.job().hold?.close()
  await advance(1_000)
  assert.equal(third.job().hold?.held, 60)
  second.end()
  third.end()
  await Promise.all(runs)
  assert.equal(await numbered, 'done')
  assert.equal(limiter.peek('ada').remaining, 99)
})

test('a job that no longer wants its hold leaves none', async () => {
  const { limiter, advance } = made()
  const open = openJob()
  const running = limiter.run('ada', open.fn, { cost: { expect: 90 } })
  const aborted = new AbortController()
  const late = limiter.run('ada', () => 'late', { cost: { expect: 90 }, signal: aborted.signal })
  const impatient = limiter.run('ada', () => 'impatient', { cost: { expect: 90 }, maxWait: 500 })
  aborted.abort()
  await assert.rejects(late, { name: 'AbortError' })
  const refused = assert.rejects(impatient, { code: 'WAIT_TOO_LONG' })
  await advance(500)
  await refused
  await assert.rejects(
    limiter.run('ada', () => 'never', { cost: { expect: 101 } }),
    { code: 'IMPOSSIBLE' },
  )
  open.end()
  await running
  assert.equal(limiter.peek('ada').remaining, 100)
})

test('keys by name are taken by run and wrap, with numbers and with holds', async () => {
  const limiter = createLimiter(
    levels({ org: fixedWindow({ limit: 100, window: 'day' }), user: tokenBucket({ limit: 50, window: '1m' }) }),
    { clock: manualClock(START_MS) },
  )
  const left = () => limiter.peek({ org: 'acme', user: 'ada' }).parts?.map(({ remaining }) => remaining)
  assert.equal(await limiter.run({ user: 'ada', org: 'acme' }, () => 'ran', { cost: 5 }), 'ran')
  assert.deepEqual(left(), [95, 45])
  const ask = limiter.wrap((_user: string, tokens: number) => ({ usage: tokens }), {
    key: (user) => ({ org: 'acme', user }),
    cost: { expect: 20 },
    costOf: ({ usage }) => usage,
  })
  assert.deepEqual(await ask('ada', 12), { usage: 12 })
  assert.deepEqual(left(), [83, 33])
  const fixed = limiter.wrap(() => 'fixed', { key: { org: 'acme', user: 'bob' }, cost: 10, costOf: () => 4 })
  assert.equal(await fixed(), 'fixed')
  assert.deepEqual(left(), [79, 33])
  await assert.rejects(
    limiter.run({ org: 'acme' }, () => 'no'),
    { code: 'KEY_INVALID', message: /one key for each of org, user/ },
  )
})
