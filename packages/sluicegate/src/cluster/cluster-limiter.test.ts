import assert from 'node:assert/strict'
import { test } from 'node:test'
import { channelPair, fleet, START_MS, turns } from 'sluicegate-testkit/cluster/channel-pair.js'
import { turnsUntil } from 'sluicegate-testkit/turns.js'
import { freshWarnings } from 'sluicegate-testkit/unhandled-rejections.js'
import { createLimiter } from '../create-limiter.js'
import { allOf, concurrency, fixedWindow, gcra, manualClock, slidingLog, tokenBucket } from '../index.js'
import type { SharedLimiter } from '../shared/shared-limiter.js'
import { primary } from './primary.js'
import { serveLimiter } from './serve-limiter.js'

freshWarnings()

const TEN = fixedWindow({ limit: 10, window: '1h', name: 'ten' })

test('a worker that dies gives back its permits, and what it had booked ahead', async () => {
  const permits = fleet(concurrency({ limit: 3, ttl: '1h' }))
  await permits.limiter.take('a', 2)
  assert.equal(permits.served.limiter.peek('a').remaining, 1)
  permits.pair.disconnect()
  assert.equal(permits.served.limiter.peek('a').remaining, 1)
  permits.pair.die()
  assert.equal(permits.served.limiter.peek('a').remaining, 3)

  const bucket = fleet(gcra({ limit: 1, window: '1s', burst: 2 }))
  await Promise.all([1, 2, 3, 4].map(() => bucket.limiter.reserve('a', 1)))
  assert.equal(bucket.served.limiter.peek('a').retryAfterMs, 3000)
  bucket.pair.die()
  // The two that were there at once may have been spent.
  assert.equal(bucket.served.limiter.peek('a').retryAfterMs, 1000)
})

test('waits are served in order of arrival over all workers; a cancelled wait returns its booking', async () => {
  const clock = manualClock(START_MS)
  const policy = gcra({ limit: 1, window: '1s', burst: 1 })
  const served = serveLimiter(policy, { clock })
  const [first, second] = [1, 2].map(() => {
    const pair = channelPair()
    served.serve(pair.worker)
    return createLimiter(policy, { store: primary({ process: pair.parent }), clock, timeout: 60_000 })
  }) as [SharedLimiter, SharedLimiter]
  const order: string[] = []
  const giveUp = new AbortController()
  const wait = async (name: string, limiter: typeof first, signal?: AbortSignal): Promise<void> => {
    const { allowed } = await limiter.wait('a', { ...(signal && { signal }) })
    order.push(`${name} ${allowed}`)
  }
  const waits = [wait('now', first)]
  await turns()
  waits.push(wait('1 s', second))
  await turns()
  waits.push(wait('2 s', first))
  await turns()
  const gone = assert.rejects(wait('gone', second, giveUp.signal), /enough/)
  await turns()
  assert.deepEqual(order, ['now true'])
  giveUp.abort(new Error('enough'))
  await gone
  await turns()
  // Booked is what one request alone may have to wait for: the others stand in the line of their worker.
  assert.equal(served.limiter.peek('a').retryAfterMs, 2000)
  assert.equal((await first.wait('a', { maxWait: 2999 })).allowed, false)
  for (let seconds = 0; seconds < 2; seconds++) {
    clock.advance(1000)
    await turns(12)
  }
  await Promise.all(waits)
  assert.deepEqual(order, ['now true', '1 s true', '2 s true'])
})

test('a wait for a permit gets it after its release in the same worker', async () => {
  const { limiter } = fleet(concurrency({ limit: 1, ttl: '1h' }))
  const held = await limiter.take('a')
  const waiting = limiter.wait('a')
  await turns()
  assert.equal(await held.release(), true)
  const permit = await waiting
  assert.equal(permit.allowed, true)
  assert.equal(await permit.heartbeat(), true)
  assert.equal(await permit.release(), true)
  assert.equal(await permit.release(), false)
})

test('a wait for a permit gets it after a booking is cancelled in the same worker', async () => {
  const { limiter } = fleet(concurrency({ limit: 1, ttl: '1h' }))
  const booked = await limiter.reserve('a', 1)
  const waiting = limiter.wait('a')
  await turns()
  await booked.cancel()
  assert.equal((await waiting).allowed, true)
})

test('what was booked is spent once, also when the primary cannot be asked any more as its time comes', async () => {
  const { clock, pair, limiter } = fleet(gcra({ limit: 1, window: '1s', burst: 1 }))
  await limiter.take('a')
  const waiting = limiter.wait('a')
  await turns()
  pair.cut(true)
  clock.advance(1000)
  await turns()
  clock.advance(100)
  await turns()
  const { allowed, source } = await waiting
  assert.deepEqual([allowed, source, limiter.stats().outageTokens], [true, 'store', 0])
})

test('a permit granted after its caller got an outage decision is returned', async () => {
  const { clock, pair, limiter, served } = fleet(concurrency({ limit: 3, ttl: '1h' }), { worker: { outage: 'closed' } })
  await turns()
  const asked = limiter.take('a')
  clock.advance(101)
  clock.advance(10)
  assert.equal((await asked).source, 'outage')
  await turns(12)
  assert.equal(served.limiter.peek('a').remaining, 3)
  assert.equal(pair.toPrimary.length > 1, true)
})

test('a booking made after its caller got an outage decision is returned', async () => {
  const { clock, limiter, served } = fleet(TEN, { worker: { outage: 'closed' } })
  await turns()
  const asked = limiter.reserve('a', 4)
  clock.advance(101)
  clock.advance(10)
  assert.equal((await asked).decision.source, 'outage')
  let least = 10
  for (let i = 0; i < 12; i++) {
    await turns(1)
    least = Math.min(least, served.limiter.peek('a').remaining)
  }
  assert.deepEqual([least, served.limiter.peek('a').remaining], [6, 10])
})

test('tokens spent without the primary are charged once it answers again', async () => {
  const policy = fixedWindow({ limit: 100, window: '24h', name: 'x' })
  const { clock, pair, limiter, served } = fleet(policy, { serve: { mode: 'exact' }, worker: { share: 0.1 } })
  await turns()
  pair.cut(true)
  const without = Array.from({ length: 12 }, () => limiter.take('a'))
  await turns()
  clock.advance(101)
  clock.advance(10)
  const sources = (await Promise.all(without)).map(({ allowed, source }) => `${allowed} ${source}`)
  assert.deepEqual(sources, [...Array<string>(10).fill('true outage'), 'false outage', 'false outage'])
  pair.cut(false)
  clock.advance(200)
  assert.equal((await limiter.take('a')).source, 'store')
  await turns(20)
  assert.equal(served.limiter.peek('a').remaining, 89)
  assert.equal(limiter.stats().accountedTokens, 10)
})

test('each of several policies is charged its own spent tokens', async () => {
  const policy = allOf([fixedWindow({ limit: 100, window: '24h' }), gcra({ limit: 100, window: '24h', burst: 50 })], { name: 'x' })
  const { clock, pair, limiter, served } = fleet(policy, { worker: { share: 0.1 } })
  await turns()
  pair.cut(true)
  const without = limiter.take(['a', 'b'], 5)
  await turns()
  clock.advance(101)
  clock.advance(10)
  assert.equal((await without).source, 'outage')
  pair.cut(false)
  clock.advance(200)
  assert.equal((await limiter.take(['a', 'b'])).source, 'store')
  await turns(20)
  assert.deepEqual(
    served.limiter.peek(['a', 'b']).parts?.map(({ remaining }) => remaining),
    [94, 44],
  )
})

test('without a channel any more a worker decides as in an outage; closed, it says so', async () => {
  const { pair, limiter } = fleet(TEN, { worker: { outage: 'local', share: 0.2 } })
  await turns()
  pair.disconnect()
  const decisions = await Promise.all([1, 2, 3].map(() => limiter.take('a')))
  assert.deepEqual(
    decisions.map(({ allowed, source }) => [allowed, source]),
    [
      [true, 'outage'],
      [true, 'outage'],
      [false, 'outage'],
    ],
  )
  await assert.rejects(limiter.block('a', '1s'), { code: 'OUTAGE' })
  limiter.close()
  assert.throws(() => limiter.take('a'), { code: 'CLOSED' })
})

test('a policy is leased as the primary says, and what the worker says of its numbers is no matter', async () => {
  const { limiter, served } = fleet(tokenBucket({ limit: 1000, window: '1s', burst: 500, name: 'x' }))
  await turns()
  const [first] = await Promise.all([limiter.take('a'), limiter.take('a')])
  assert.deepEqual([first.source, first.remaining], ['lease', 399])
  served.update(tokenBucket({ limit: 2000, window: '1s', burst: 600 }))
  await turns()
  assert.deepEqual([limiter.policy.limit, limiter.policy.name], [2000, 'x'])
  const [later] = await Promise.all([limiter.take('b'), limiter.take('b')])
  assert.deepEqual([later.source, later.remaining], ['lease', 399])
})

test('a take that the primary decides counts at its time, so that an answer later than a lease is spent', async () => {
  const { clock, served, limiter } = fleet(gcra({ limit: 1, window: '1s', burst: 1, name: 'x' }), {
    worker: { timeout: 60_000, outage: 'closed' },
  })
  await turns()
  assert.equal((await limiter.take('before')).source, 'store')
  const takes = ['a', 'b', 'c', 'd'].map((key) => limiter.take(key))
  served.update(gcra({ limit: 1000, window: '1s', burst: 500 }))
  clock.advance(150)
  const sources = (await Promise.all(takes)).map(({ source }) => source)
  assert.deepEqual(sources, ['store', 'store', 'store', 'store'])
  assert.equal(limiter.stats().outages, 0)
  for (const { allowed, source } of await Promise.all([limiter.take('after'), limiter.take('after')])) {
    assert.deepEqual([allowed, source], [true, 'lease'])
  }
})

test('a log of the longest window has no room for a lease, and is asked for each time', async () => {
  const { limiter } = fleet(slidingLog({ limit: 100, window: '366d' }))
  await turns()
  await limiter.take('a')
  assert.equal((await limiter.take('a')).source, 'store')
})

test('another algorithm under the same name causes a warning, and is an outage', async () => {
  const pair = channelPair()
  const served = serveLimiter(TEN)
  served.serve(pair.worker)
  const codes: unknown[] = []
  const hear = ({ code }: Error & { code?: string }): void => void codes.push(code)
  process.on('warning', hear)
  const limiter = createLimiter(gcra({ limit: 5, window: '1s', name: 'ten' }), {
    store: primary({ process: pair.parent }),
    outage: 'closed',
  })
  await turnsUntil(() => codes.includes('SLUICEGATE_POLICY'))
  process.off('warning', hear)
  assert.equal((await limiter.take('a')).source, 'outage')
})

test('a worker knows by the primary how many share the policy, from each fork and each end on, and spends its share without it', async () => {
  const clock = manualClock(START_MS)
  const policy = tokenBucket({ limit: 60, window: '1h', burst: 60, name: 'shared' })
  const served = serveLimiter(policy, { clock, mode: 'exact' })
  const workers = Array.from({ length: 6 }, () => {
    const pair = channelPair()
    served.serve(pair.worker)
    return { pair, limiter: createLimiter(policy, { store: primary({ process: pair.parent }), clock }) }
  })
  await turns()
  const sharesOf = (all: typeof workers) => all.map(({ limiter }) => [limiter.stats().nodes, limiter.stats().share])
  assert.deepEqual(
    sharesOf(workers),
    workers.map(() => [6, 1 / 6]),
  )
  workers.shift()?.pair.die()
  await turns()
  assert.deepEqual(
    sharesOf(workers),
    workers.map(() => [5, 1 / 5]),
  )
  for (const { pair } of workers) pair.disconnect()
  const decisions = await Promise.all(workers.flatMap(({ limiter }) => Array.from({ length: 20 }, () => limiter.take('a'))))
  assert.deepEqual([...new Set(decisions.map(({ source }) => source))], ['outage'])
  assert.equal(decisions.filter(({ allowed }) => allowed).length, 60)
})

test('the option share of a worker overrides the number of workers', async () => {
  const pair = channelPair()
  const served = serveLimiter(TEN)
  served.serve(pair.worker)
  const limiter = createLimiter(TEN, { store: primary({ process: pair.parent }), share: 0.3 })
  await turns()
  assert.equal(limiter.stats().share, 0.3)
  limiter.close()
  served.close()
})
