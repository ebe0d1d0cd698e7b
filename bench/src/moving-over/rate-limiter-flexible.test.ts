import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { RateLimiterRes } from 'sluicegate/rate-limiter-flexible'
import { compareHistories } from './flexible-history.js'
import { type FlexibleLimiter, FlexibleTwins } from './flexible-twins.js'

const SEEDS = 100

test(`ours and rate-limiter-flexible answer ${SEEDS} random histories alike, within one window and from one to the next`, async () => {
  let denials = 0
  for (let seed = 1; seed <= SEEDS; seed++) denials += await compareHistories(seed)
  assert.ok(denials > 10 * SEEDS, `${denials} denials`)
})

function twins(t: TestContext, options: { points?: number; blockDuration?: number } = {}): FlexibleTwins {
  const both = new FlexibleTwins({ points: 5, duration: 10, ...options })
  t.after(() => both.stop())
  return both
}

/** Whether a point passes. */
const passes = (limiter: FlexibleLimiter, key = 'ada', points = 1): Promise<boolean> =>
  limiter.consume(key, points).then(
    () => true,
    () => false,
  )

test('a difference: theirs counts what it denies, ours does not', async (t) => {
  const { theirs, ours } = twins(t)
  for (const limiter of [theirs, ours]) {
    await limiter.consume('ada', 3)
    assert.equal(await passes(limiter, 'ada', 4), false)
  }
  assert.deepEqual([await passes(theirs), await passes(ours)], [false, true])
})

test('a difference: windows begin with the first request there, and with the clock here', async (t) => {
  const both = twins(t)
  const { theirs, ours } = both
  both.advance(9_000)
  for (const limiter of [theirs, ours]) await limiter.consume('ada', 5)
  both.advance(1_000)
  assert.deepEqual([await passes(theirs), await passes(ours)], [false, true])
})

test('a difference: a reward goes below nothing there, and to nothing here', async (t) => {
  const { theirs, ours } = twins(t)
  for (const limiter of [theirs, ours]) await limiter.reward('ada', 5)
  assert.deepEqual([await passes(theirs, 'ada', 8), await passes(ours, 'ada', 8)], [true, false])
})

test('a difference: a block takes the place of what was consumed there, and stands beside it here', async (t) => {
  const both = twins(t)
  const { theirs, ours } = both
  for (const limiter of [theirs, ours]) {
    await limiter.consume('ada', 5)
    await limiter.block('ada', 2)
  }
  both.advance(2_001)
  assert.deepEqual([await passes(theirs), await passes(ours)], [true, false])
})

test('a difference: of two blocks the later wins there, and the longer here', async (t) => {
  const both = twins(t)
  const { theirs, ours } = both
  for (const limiter of [theirs, ours]) {
    await limiter.block('ada', 30)
    await limiter.block('ada', 1)
  }
  both.advance(11_000)
  assert.deepEqual([await passes(theirs), await passes(ours)], [true, false])
})

test('a difference: with all points consumed, but none denied yet, get() says that they are above all here', async (t) => {
  const { theirs, ours } = twins(t)
  for (const limiter of [theirs, ours]) await limiter.consume('ada', 5)
  assert.deepEqual([(await theirs.get('ada'))?.consumedPoints, (await ours.get('ada'))?.consumedPoints], [5, 6])
})

test('what is asked that can never pass says so here, and the end of the window there', async (t) => {
  const [theirs, ours] = await twins(t).both((limiter) => limiter.consume('ada', 6))
  assert.ok('denied' in theirs && 'denied' in ours && ours.denied instanceof RateLimiterRes)
  assert.deepEqual([theirs.denied.msBeforeNext, ours.denied.msBeforeNext], [10_000, Number.MAX_SAFE_INTEGER])
})

test('a difference: who was penalized beyond all points is blocked by no denial there, and by the first one here', async (t) => {
  const both = twins(t, { blockDuration: 600 })
  const { theirs, ours } = both
  for (const limiter of [theirs, ours]) {
    await limiter.penalty('ada', 6)
    assert.equal(await passes(limiter), false)
  }
  both.advance(10_000)
  assert.deepEqual([await passes(theirs), await passes(ours)], [true, false])
})

test('a short block by hand leaves the next denial to block', async (t) => {
  const both = twins(t, { points: 2, blockDuration: 600 })
  await both.both((limiter) => limiter.block('ada', 5))
  both.advance(10_000)
  for (let i = 0; i < 2; i++) await both.both((limiter) => limiter.consume('ada'))
  const [theirs, ours] = await both.both((limiter) => limiter.consume('ada'))
  assert.ok('denied' in theirs && 'denied' in ours)
  assert.deepEqual([theirs.denied.msBeforeNext, ours.denied.msBeforeNext], [600_000, 600_000])
})

test('who asks while a long block by hand lasts is not blocked for longer', async (t) => {
  const both = twins(t, { points: 2, blockDuration: 20 })
  await both.both((limiter) => limiter.block('ada', 60))
  both.advance(50_000)
  await both.both((limiter) => limiter.penalty('ada', 2))
  const [theirs, ours] = await both.both((limiter) => limiter.consume('ada'))
  assert.ok('denied' in theirs && 'denied' in ours)
  assert.deepEqual([theirs.denied.msBeforeNext, ours.denied.msBeforeNext], [10_000, 10_000])
})

test('keys and lengths of time are told alike', (t) => {
  const { theirs, ours } = twins(t, { blockDuration: 600 })
  const [a, b] = [theirs, ours] as unknown as [Named, Named]
  assert.equal(b.getKey('ada'), a.getKey('ada'))
  assert.equal(b.parseKey(b.getKey('ada')), 'ada')
  assert.deepEqual([b.msDuration, b.msBlockDuration], [a.msDuration, a.msBlockDuration])
})

/** What both tell of themselves. */
interface Named {
  readonly msDuration: number
  readonly msBlockDuration: number
  getKey(key: string): string
  parseKey(limiterKey: string): string
}
