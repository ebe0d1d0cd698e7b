import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { RateLimiterRes } from 'sluicegate/rate-limiter-flexible'
import { shortOrLong } from 'sluicegate-testkit'
import { compareHistories } from './flexible-history.js'
import { type FlexibleLimiter, FlexibleTwins, type Outcome } from './flexible-twins.js'

const SEEDS = shortOrLong(20, 100)

test(`ours and rate-limiter-flexible answer ${SEEDS} random histories alike, within one window and from one to the next`, async () => {
  let denials = 0
  for (let seed = 1; seed <= SEEDS; seed++) denials += (await compareHistories(seed)).denials
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

test('a block by hand or at a denial takes the place of what was consumed, however long the window is', async (t) => {
  const both = twins(t, { blockDuration: 2 })
  for (const block of [(limiter: FlexibleLimiter) => limiter.block('ada', 2), (limiter: FlexibleLimiter) => limiter.consume('ada')]) {
    await both.both((limiter) => limiter.consume('ada', 5))
    const [theirs, ours] = await both.both(block)
    assert.equal(answered(ours).msBeforeNext, answered(theirs).msBeforeNext)
    both.advance(2_001)
    assert.deepEqual([await passes(both.theirs), await passes(both.ours)], [true, true])
    await both.both((limiter) => limiter.delete('ada'))
  }
})

test('a login that looks first is locked out at the same try and for as long, whatever the window', async (t) => {
  for (const blockDuration of [3, 600]) {
    const both = twins(t, { points: 3, blockDuration })
    const said: string[][] = [[], []]
    for (let i = 0; i < 8; i++) {
      for (const [side, limiter] of [both.theirs, both.ours].entries()) said[side]?.push(await login(limiter))
      both.advance(100)
    }
    assert.deepEqual(said[1], said[0])
    assert.equal(said[1]?.at(-1), `locked out for ${blockDuration * 1000 - 400}`)
    both.stop()
  }
})

/** A wrong password, guarded as in the guides of rate-limiter-flexible. */
async function login(limiter: FlexibleLimiter): Promise<string> {
  const known = await limiter.get('ada')
  if (known !== null && known.consumedPoints > 3) return `locked out for ${known.msBeforeNext}`
  return limiter.consume('ada').then(
    ({ remainingPoints }) => `wrong, ${remainingPoints} left`,
    ({ msBeforeNext }) => `wrong, and locked out for ${msBeforeNext}`,
  )
}

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

test('a difference: with all points consumed, but none denied yet, and where no denial blocks, get() says that they are above all here', async (t) => {
  const { theirs, ours } = twins(t)
  for (const limiter of [theirs, ours]) await limiter.consume('ada', 5)
  assert.deepEqual([(await theirs.get('ada'))?.consumedPoints, (await ours.get('ada'))?.consumedPoints], [5, 6])
})

test('of points that there never are both tell the rest of the window, or the block', async (t) => {
  for (const blockDuration of [0, 600]) {
    const both = twins(t, { blockDuration })
    for (const points of [6, 9]) {
      const [theirs, ours] = await both.both((limiter) => limiter.consume('ada', points))
      assert.ok('denied' in theirs && 'denied' in ours && ours.denied instanceof RateLimiterRes)
      assert.equal(ours.denied.msBeforeNext, theirs.denied.msBeforeNext)
    }
    both.stop()
  }
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

test('keys and lengths of time are reported alike', (t) => {
  const { theirs, ours } = twins(t, { blockDuration: 600 })
  const [a, b] = [theirs, ours] as unknown as [Named, Named]
  assert.equal(b.getKey('ada'), a.getKey('ada'))
  assert.equal(b.parseKey(b.getKey('ada')), 'ada')
  assert.deepEqual([b.msDuration, b.msBlockDuration], [a.msDuration, a.msBlockDuration])
})

function answered(outcome: Outcome): RateLimiterRes {
  return ('denied' in outcome ? outcome.denied : outcome.passed) as RateLimiterRes
}

/** What both tell of themselves. */
interface Named {
  readonly msDuration: number
  readonly msBlockDuration: number
  getKey(key: string): string
  parseKey(limiterKey: string): string
}
