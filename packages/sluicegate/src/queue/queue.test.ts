import assert from 'node:assert/strict'
import { test } from 'node:test'
import { shortOrLong } from 'sluicegate-testkit'
import { microtasks } from 'sluicegate-testkit/turns.js'
import { createLimiter } from '../create-limiter.js'
import { PolicyError } from '../errors.js'
import type { LimiterOptions } from '../limiter.js'
import { allOf } from '../policy/all-of.js'
import type { Policy } from '../policy/policy.js'
import { concurrency, fixedWindow, gcra, slidingLog, slidingWindow, tokenBucket } from '../policy/single-policy.js'
import { manualClock } from '../time/clock.js'
import { createQueue } from './create-queue.js'
import type { QueueOptions } from './queue-options.js'
import { QueueError, type QueueErrorCode } from './work-queue.js'

const START_MS = 1_760_000_000_000

function made(policy: Policy, options: LimiterOptions = {}, bounds?: QueueOptions) {
  const clock = manualClock(START_MS)
  const limiter = createLimiter(policy, { ...options, clock })
  const queue = bounds === undefined ? limiter.queue : createQueue(limiter, bounds)
  const started: string[] = []
  /** A job that ends when it is let go. */
  const jobs = new Map<string, () => void>()
  const job = (name: string) => () => {
    started.push(`${name}@${clock.nowMs() - START_MS}`)
    return new Promise<string>((resolve) => jobs.set(name, () => resolve(name)))
  }
  /** A job that is done at once. */
  const quick = (name: string) => () => {
    started.push(`${name}@${clock.nowMs() - START_MS}`)
    return name
  }
  const advance = async (ms: number): Promise<void> => {
    clock.advance(ms)
    await microtasks(300)
  }
  const finish = async (name: string): Promise<void> => {
    jobs.get(name)?.()
    await microtasks(300)
  }
  return { clock, limiter, queue, started, job, quick, advance, finish }
}

function hasCode(code: QueueErrorCode): (error: unknown) => boolean {
  return (error) => error instanceof QueueError && error.code === code
}

test('a job runs at once while tokens are there, and its promise is that of its function', async () => {
  const { limiter, started, quick } = made(tokenBucket({ limit: 2, window: '1s' }))
  assert.equal(await limiter.run('a', quick('first')), 'first')
  assert.equal(await limiter.run('a', async () => 42), 42)
  await assert.rejects(
    limiter.run('b', () => {
      throw new RangeError('mine')
    }),
    RangeError,
  )
  assert.deepEqual(started, ['first@0'])
  assert.deepEqual(limiter.queue.stats(), { queued: 0, running: 0, keys: 0, completed: 2, failed: 1, rejected: 0 })
})

for (const policy of [
  tokenBucket({ limit: 1, window: '1s' }),
  gcra({ limit: 1, window: '1s', burst: 1 }),
  fixedWindow({ limit: 1, window: '1s' }),
  slidingLog({ limit: 1, window: '1s' }),
]) {
  test(`jobs start one by one as ${policy.algorithm} admits them, in the order of arrival`, async () => {
    const { limiter, started, quick, advance } = made(policy)
    const done = Promise.all(['a', 'b', 'c'].map((name) => limiter.run('key', quick(name))))
    await microtasks(300)
    for (let i = 0; i < 20; i++) await advance(100)
    assert.deepEqual(await done, ['a', 'b', 'c'])
    assert.deepEqual(started, ['a@0', 'b@1000', 'c@2000'])
  })
}

test('an approximated sliding window never lets a job start before its time', async () => {
  const { limiter, started, quick, advance } = made(slidingWindow({ limit: 2, window: '1s' }))
  const done = Promise.all(['a', 'b', 'c', 'd'].map((name) => limiter.run('key', quick(name))))
  for (let i = 0; i < 60; i++) await advance(50)
  await done
  const times = started.map((each) => Number(each.split('@')[1]))
  assert.equal(times[1], 0)
  assert.ok((times[2] as number) >= 1000, String(times))
})

test('the highest priority goes first, to the last moment', async () => {
  const { limiter, started, quick, advance } = made(tokenBucket({ limit: 1, window: '1s' }))
  const runs = [limiter.run('key', quick('now')), limiter.run('key', quick('low'), { priority: -1 }), limiter.run('key', quick('mid'))]
  await advance(999)
  runs.push(limiter.run('key', quick('high'), { priority: 5 }))
  for (let i = 0; i < 4; i++) await advance(1000)
  await Promise.all(runs)
  assert.deepEqual(
    started.map((each) => each.split('@')[0]),
    ['now', 'high', 'mid', 'low'],
  )
})

test('a job of higher priority and another cost overtakes one that was next, and no token is lost by it', async () => {
  const { limiter, started, quick, advance } = made(tokenBucket({ limit: 10, window: '1s' }))
  const runs = [limiter.run('key', quick('all'), { cost: 10 }), limiter.run('key', quick('large'), { cost: 10 })]
  await advance(300)
  runs.push(limiter.run('key', quick('small'), { cost: 1, priority: 1 }))
  await advance(1)
  assert.deepEqual(started, ['all@0', 'small@300'])
  await advance(799)
  await Promise.all(runs)
  assert.deepEqual(started.at(-1), 'large@1100')
})

test('no more jobs run at once than concurrency says, over all keys, by priority and then by arrival', async () => {
  const { queue, started, job, finish } = made(tokenBucket({ limit: 100, window: '1s' }), {}, { concurrency: 2 })
  const runs = ['a', 'b', 'c', 'd'].map((name) => queue.run(name, job(name), { priority: name === 'd' ? 1 : 0 }))
  await microtasks(300)
  assert.deepEqual(started, ['a@0', 'b@0'])
  await finish('b')
  assert.deepEqual(started, ['a@0', 'b@0', 'd@0'])
  await finish('a')
  await finish('d')
  await finish('c')
  assert.deepEqual(await Promise.all(runs), ['a', 'b', 'c', 'd'])
})

test('a token that comes while no place is free goes back, and is taken again once one is', async () => {
  const { limiter, queue, started, job, advance, finish } = made(gcra({ limit: 1, window: '1s', burst: 1 }), {}, { concurrency: 1 })
  const runs = [queue.run('key', job('a')), queue.run('key', job('b'))]
  await advance(5000)
  assert.deepEqual(started, ['a@0'])
  assert.equal(limiter.peek('key').allowed, true)
  await finish('a')
  assert.deepEqual(started, ['a@0', 'b@5000'])
  assert.equal(limiter.take('key').allowed, false)
  await finish('b')
  await Promise.all(runs)
})

test('a key without tokens keeps no other key from running', async () => {
  const { queue, started, quick, advance } = made(tokenBucket({ limit: 1, window: '1h' }), {}, { concurrency: 1 })
  const runs = [queue.run('busy', quick('busy')), queue.run('busy', quick('later'), { priority: 9 })]
  for (let i = 0; i < 100; i++) runs.push(queue.run(`key ${i}`, quick(`key ${i}`)))
  await microtasks(300)
  assert.equal(started.length, 101)
  await advance(3_600_000)
  await Promise.all(runs)
})

test('under concurrency a job holds its permit while it runs, however long that takes', async () => {
  const { limiter, started, job, advance, finish } = made(concurrency({ limit: 1, ttl: '10s' }))
  const runs = [limiter.run('key', job('a')), limiter.run('key', job('b'))]
  for (let i = 0; i < 10; i++) await advance(5000)
  assert.deepEqual(started, ['a@0'])
  await finish('a')
  assert.deepEqual(started, ['a@0', 'b@50000'])
  await finish('b')
  assert.deepEqual(await Promise.all(runs), ['a', 'b'])
  assert.equal(limiter.peek('key').remaining, 1)
})

test('a waiting job that is aborted leaves the queue with the reason of its signal, and its token is not spent', async () => {
  const { limiter, started, quick, advance } = made(tokenBucket({ limit: 1, window: '1s' }))
  const controller = new AbortController()
  await limiter.run('key', quick('first'))
  const aborted = limiter.run('key', quick('never'), { signal: controller.signal })
  controller.abort(new Error('enough'))
  await assert.rejects(aborted, /enough/)
  await advance(1000)
  assert.equal(limiter.take('key').allowed, true)
  assert.deepEqual(started, ['first@0'])
  await assert.rejects(limiter.run('key', quick('never'), { signal: AbortSignal.abort(new Error('before')) }), /before/)
})

test('a running job that is aborted rejects at once and holds its place until its function ends', async () => {
  const { queue, started, job, finish } = made(tokenBucket({ limit: 9, window: '1s' }), {}, { concurrency: 1 })
  const controller = new AbortController()
  const run = queue.run('key', job('a'), { signal: controller.signal })
  const next = queue.run('key', job('b'))
  controller.abort(new Error('enough'))
  await assert.rejects(run, /enough/)
  assert.deepEqual(started, ['a@0'])
  await finish('a')
  assert.deepEqual(started, ['a@0', 'b@0'])
  await finish('b')
  await next
})

test('a job that runs too long is rejected, hears of it by its signal, and frees its place', async () => {
  const { queue, started, job, advance, finish } = made(tokenBucket({ limit: 9, window: '1s' }), {}, { concurrency: 1 })
  let heard: unknown
  const late = queue.run(
    'key',
    ({ signal }) =>
      new Promise(() => {
        signal.addEventListener('abort', () => {
          heard = signal.reason
        })
      }),
    { timeout: 500 },
  )
  const rejected = assert.rejects(late, hasCode('TIMEOUT'))
  const next = queue.run('key', job('next'))
  await advance(499)
  assert.deepEqual(started, [])
  await advance(1)
  await rejected
  assert.ok(heard instanceof QueueError)
  assert.deepEqual(started, ['next@500'])
  await finish('next')
  await next
  assert.deepEqual(queue.stats().failed, 1)
})

test('a job that does not start in time is rejected: at once where that is known', async () => {
  const { limiter, quick, advance } = made(tokenBucket({ limit: 1, window: '1s' }))
  await limiter.run('key', quick('first'))
  await assert.rejects(limiter.run('key', quick('never'), { maxWait: 999 }), hasCode('WAIT_TOO_LONG'))
  await assert.rejects(limiter.run('key', quick('never'), { maxWait: 0 }), hasCode('WAIT_TOO_LONG'))
  const second = limiter.run('key', quick('second'))
  const third = limiter.run('key', quick('third'), { maxWait: 1500 })
  const rejected = assert.rejects(third, hasCode('WAIT_TOO_LONG'))
  await advance(1000)
  await second
  await advance(500)
  await rejected
})

test('a job that does not wait runs at once or not at all, also where places are what is missing', async () => {
  const { queue, job, finish } = made(tokenBucket({ limit: 9, window: '1s' }), {}, { concurrency: 1, maxWaiting: 0 })
  const first = queue.run('key', job('a'))
  await assert.rejects(queue.run('key', job('b')), hasCode('QUEUE_FULL'))
  await assert.rejects(queue.run('other', job('b'), { maxWait: 0 }), hasCode('WAIT_TOO_LONG'))
  await finish('a')
  await first
})

test('a cost that can never pass and a key on the deny list are two different errors', async () => {
  const { limiter, quick } = made(tokenBucket({ limit: 5, window: '1s' }), { deny: ['mallory'] })
  await assert.rejects(limiter.run('key', quick('large'), { cost: 6 }), hasCode('IMPOSSIBLE'))
  await assert.rejects(limiter.run('mallory', quick('never')), hasCode('DENIED'))
  assert.equal(await limiter.run('key', quick('fits'), { cost: 5 }), 'fits')
})

test('what can never pass is measured by the burst, of the policy of the key, and of each of several', async () => {
  const small = tokenBucket({ limit: 10, window: '1s', burst: 5 })
  const large = tokenBucket({ limit: 10, window: '1s', burst: 50 })
  const tiers = made(small, { deny: ['mallory'], policyFor: (key) => (key === 'pro' || key === 'mallory' ? large : undefined) })
  await assert.rejects(tiers.limiter.run('key', tiers.quick('large'), { cost: 7 }), hasCode('IMPOSSIBLE'))
  await assert.rejects(tiers.limiter.run('pro', tiers.quick('large'), { cost: 51 }), hasCode('IMPOSSIBLE'))
  await assert.rejects(tiers.limiter.run('mallory', tiers.quick('never'), { cost: 20 }), hasCode('DENIED'))
  const several = made(allOf([small, large]))
  await assert.rejects(several.limiter.run('key', several.quick('large'), { cost: 7 }), hasCode('IMPOSSIBLE'))
})

test('a full queue refuses the newest job by default', async () => {
  const { queue, started, quick, advance } = made(tokenBucket({ limit: 1, window: '1s' }), {}, { maxWaiting: 2 })
  const runs = ['a', 'b', 'c'].map((name) => queue.run('key', quick(name)))
  await assert.rejects(queue.run('key', quick('d'), { priority: 9 }), hasCode('QUEUE_FULL'))
  for (let i = 0; i < 3; i++) await advance(1000)
  await Promise.all(runs)
  assert.deepEqual(started, ['a@0', 'b@1000', 'c@2000'])
})

test('drop-oldest drops the oldest job of the lowest priority, and refuses one that matters less than all others', async () => {
  const { queue, started, quick, advance } = made(tokenBucket({ limit: 1, window: '1s' }), {}, { maxWaiting: 2, overflow: 'drop-oldest' })
  const first = queue.run('key', quick('a'))
  const dropped = assert.rejects(queue.run('key', quick('b')), hasCode('DROPPED'))
  const kept = [queue.run('key', quick('c')), queue.run('key', quick('d'))]
  await dropped
  await assert.rejects(queue.run('key', quick('e'), { priority: -1 }), hasCode('QUEUE_FULL'))
  for (let i = 0; i < 3; i++) await advance(1000)
  await Promise.all([first, ...kept])
  assert.deepEqual(started, ['a@0', 'c@1000', 'd@2000'])
})

test('drop-lowest-priority drops only what matters less than the newest', async () => {
  const { queue, started, quick, advance } = made(
    tokenBucket({ limit: 1, window: '1s' }),
    {},
    { maxWaiting: 1, overflow: 'drop-lowest-priority' },
  )
  const first = queue.run('key', quick('a'))
  const second = assert.rejects(queue.run('key', quick('b')), hasCode('DROPPED'))
  await assert.rejects(queue.run('key', quick('c')), hasCode('QUEUE_FULL'))
  const last = queue.run('key', quick('d'), { priority: 1 })
  await second
  await advance(1000)
  await Promise.all([first, last])
  assert.deepEqual(started, ['a@0', 'd@1000'])
})

test('one key cannot fill the queue of all', async () => {
  const { queue, started, quick } = made(tokenBucket({ limit: 1, window: '1h' }), {}, { maxWaiting: 100, maxWaitingPerKey: 3 })
  const runs: Promise<unknown>[] = []
  for (let i = 0; i < 1000; i++) runs.push(queue.run('mallory', quick(`mallory ${i}`)).catch((error: QueueError) => error.code))
  await queue.run('ada', quick('ada'))
  assert.deepEqual(started, ['mallory 0@0', 'ada@0'])
  assert.equal(queue.stats().queued, 3)
  queue.clear()
  const codes = await Promise.all(runs)
  assert.equal(codes.filter((code) => code === 'QUEUE_FULL').length, 996)
})

test('a paused queue starts nothing, spends nothing, and goes on where it stopped', async () => {
  const { limiter, queue, started, quick, advance } = made(tokenBucket({ limit: 1, window: '1s' }), {}, {})
  queue.pause()
  const runs = ['a', 'b'].map((name) => queue.run('key', quick(name)))
  await advance(1000)
  assert.deepEqual([started, queue.isPaused, queue.stats().queued], [[], true, 2])
  assert.equal(limiter.peek('key').remaining, 1)
  queue.resume()
  await microtasks(300)
  assert.deepEqual(started, ['a@1000'])
  queue.pause()
  await advance(5000)
  assert.deepEqual([started, limiter.peek('key').remaining], [['a@1000'], 1])
  queue.resume()
  await Promise.all(runs)
  assert.deepEqual(started, ['a@1000', 'b@6000'])
})

test('onEmpty waits for the last job to start, onIdle for it to end', async () => {
  const { limiter, job, advance, finish } = made(tokenBucket({ limit: 1, window: '1s' }))
  const { queue } = limiter
  await Promise.all([queue.onEmpty(), queue.onIdle()])
  const runs = [limiter.run('key', job('a')), limiter.run('key', job('b'))]
  const heard: string[] = []
  void queue.onEmpty().then(() => heard.push('empty'))
  void queue.onIdle().then(() => heard.push('idle'))
  await finish('a')
  assert.deepEqual(heard, [])
  await advance(1000)
  assert.deepEqual(heard, ['empty'])
  await finish('b')
  assert.deepEqual(heard, ['empty', 'idle'])
  await Promise.all(runs)
})

test('clear rejects what waits and nothing else', async () => {
  const { limiter, job, finish } = made(tokenBucket({ limit: 1, window: '1s' }))
  const running = limiter.run('key', job('a'))
  const waiting = assert.rejects(limiter.run('key', job('b')), hasCode('CLEARED'))
  assert.equal(limiter.queue.clear(), 1)
  await waiting
  await finish('a')
  assert.equal(await running, 'a')
})

test('closing the limiter rejects what waits, and later jobs', async () => {
  const { limiter, quick } = made(tokenBucket({ limit: 1, window: '1s' }))
  await limiter.run('key', quick('a'))
  const waiting = assert.rejects(limiter.run('key', quick('b')), hasCode('CLOSED'))
  limiter.close()
  await waiting
  await assert.rejects(limiter.run('key', quick('c')), hasCode('CLOSED'))
})

test('wrap keeps this, arguments and result, and takes a key of them', async () => {
  const { limiter } = made(tokenBucket({ limit: 1, window: '1s' }))
  const service = {
    base: 40,
    add: limiter.wrap(
      async function (this: { base: number }, a: number, _user: string) {
        return this.base + a
      },
      { key: (_a, user) => user, maxWait: 0 },
    ),
  }
  assert.equal(await service.add(2, 'ada'), 42)
  assert.equal(await service.add(3, 'bob'), 43)
  await assert.rejects(service.add(2, 'ada'), hasCode('WAIT_TOO_LONG'))
  const plain = limiter.wrap((name: string) => name.length)
  assert.equal(await plain('four'), 4)
})

test('settle refunds what was not used and charges what was used beyond the estimate', async () => {
  const { limiter } = made(tokenBucket({ limit: 100, window: '1s' }))
  await limiter.run('key', (job) => job.settle(10), { cost: 40 })
  assert.equal(limiter.peek('key').remaining, 90)
  await limiter.run('key', (job) => job.settle(60), { cost: 40 })
  assert.equal(limiter.peek('key').remaining, 30)
  await limiter.run(
    'key',
    async (job) => {
      await job.settle(0)
      await job.settle(30)
    },
    { cost: 20 },
  )
  assert.equal(limiter.peek('key').remaining, 30)
  await assert.rejects(
    limiter.run('key', (job) => job.settle(-1)),
    (error) => error instanceof PolicyError && error.code === 'COST_INVALID',
  )
})

test('a shadow lets every job start, and a token that was not charged is not refunded', async () => {
  const { limiter, quick } = made(tokenBucket({ limit: 1, window: '1s' }), { shadow: true })
  assert.deepEqual(await Promise.all(['a', 'b', 'c'].map((name) => limiter.run('key', quick(name)))), ['a', 'b', 'c'])
  await limiter.run('key', (job) => job.settle(0))
  assert.equal(limiter.peek('key').wouldDeny, true)
})

test('misuse rejects and says what to do', async () => {
  const { limiter, quick } = made(tokenBucket({ limit: 1, window: '1s' }))
  const rejects = (run: Promise<unknown>, code: string, message: RegExp): Promise<void> =>
    assert.rejects(run, (error) => error instanceof PolicyError && error.code === code && message.test(error.message))
  await rejects(limiter.run('', quick('a')), 'KEY_INVALID', /key/)
  await rejects(limiter.run('key', 5 as never), 'OPTION_INVALID', /fn: must be a function/)
  await rejects(limiter.run('key', Promise.resolve() as never), 'OPTION_INVALID', /\(\) => work\(\)/)
  await rejects(limiter.run('key', quick('a'), { cost: 0 }), 'COST_INVALID', /cost/)
  await rejects(limiter.run('key', quick('a'), { priority: Number.NaN }), 'OPTION_INVALID', /higher starts first/)
  await rejects(limiter.run('key', quick('a'), { timeoutMs: 5 } as never), 'OPTION_UNKNOWN', /timeout/)
  assert.throws(() => createQueue(createLimiter(tokenBucket({ limit: 1, window: 1 })), { concurrency: 0 }), PolicyError)
  assert.throws(() => createQueue(limiter, { overflow: 'leak' as never }), /drop-oldest/)
  assert.throws(() => createQueue(tokenBucket({ limit: 1, window: '1s' }) as never), {
    code: 'OPTION_INVALID',
    message: /^limiter: .*createLimiter/,
  })
})

test('a job may add jobs, pause the queue and close it', async () => {
  const { queue } = made(tokenBucket({ limit: 100, window: '1s' }), {}, { concurrency: 1 })
  const names: string[] = []
  await queue.run('key', async () => {
    names.push('outer')
    void queue.run('key', () => names.push('inner'))
    queue.pause()
  })
  assert.deepEqual(names, ['outer'])
  queue.resume()
  await queue.onIdle()
  assert.deepEqual(names, ['outer', 'inner'])
})

test('a queue of its own over a limiter has bounds of its own, and leaves the limiter open when it is closed', async () => {
  const { clock, limiter, quick } = made(tokenBucket({ limit: 1, window: '1s' }))
  const queue = createQueue(limiter, { clock, maxWaiting: 0 })
  assert.equal(await queue.run('key', quick('a')), 'a')
  await assert.rejects(queue.run('key', quick('b')), hasCode('QUEUE_FULL'))
  queue.close()
  assert.equal(limiter.take('other').allowed, true)
  await assert.rejects(queue.run('key', quick('c')), hasCode('CLOSED'))
})

test('a queue of its own goes by the clock of its limiter, but not by the steps of a wall clock', async (t) => {
  const { limiter, clock } = made(tokenBucket({ limit: 1, window: '1h' }))
  const late = assert.rejects(
    createQueue(limiter).run('a', () => new Promise(() => {}), { timeout: 1_000 }),
    hasCode('TIMEOUT'),
  )
  clock.advance(1_000)
  await late
  let offsetMs = 0
  const { now } = Date
  t.mock.method(Date, 'now', () => now() + offsetMs)
  const days = createLimiter(fixedWindow({ limit: 1, window: 'day' }))
  const timed = assert.rejects(
    days.run('a', () => new Promise(() => {}), { timeout: 20 }),
    hasCode('TIMEOUT'),
  )
  offsetMs = -36_000_000
  await timed
})

test('thousands of jobs of many keys leave nothing behind', async () => {
  const count = shortOrLong(2_000, 10_000)
  const { queue, advance } = made(tokenBucket({ limit: 5, window: '1s' }), {}, { concurrency: 50 })
  let ran = 0
  const runs: Promise<unknown>[] = []
  for (let i = 0; i < count; i++) {
    runs.push(
      queue.run(`key ${i % (count / 10)}`, async () => {
        ran++
      }),
    )
  }
  for (let i = 0; i < 10; i++) await advance(200)
  await Promise.all(runs)
  assert.equal(ran, count)
  assert.deepEqual(queue.stats(), { queued: 0, running: 0, keys: 0, completed: count, failed: 0, rejected: 0 })
})

test('a permit is renewed as its own policy says, also one of a tier, and after an update that makes it shorter', async () => {
  const long = concurrency({ limit: 1, ttl: '60s' })
  const short = concurrency({ limit: 1, ttl: '4s', name: 'short' })
  const { limiter, job, finish, advance } = made(long, { policyFor: (key) => (key === 'tier' ? short : undefined) })
  const jobs = [limiter.run('tier', job('tier')), limiter.run('own', job('own'))]
  await microtasks(300)
  limiter.update(concurrency({ limit: 1, ttl: '6s' }))
  for (let i = 0; i < 60; i++) {
    await advance(1_000)
    assert.deepEqual([limiter.peek('tier').remaining, limiter.peek('own').remaining], [0, 0], `after ${i + 1} s`)
  }
  await finish('tier')
  await finish('own')
  await Promise.all(jobs)
})
