import assert from 'node:assert/strict'
import { test } from 'node:test'
import { concurrency, createLimiter, manualClock, PolicyError, tokenBucket } from '../../index.js'
import { denied } from '../../testing/flexible-denial.js'
import { RateLimiterMemory, type RateLimiterMemoryOptions, RateLimiterRes, RateLimiterSluicegate } from './index.js'

const clock = manualClock(600_000)

const limiterOf = (options: Partial<RateLimiterMemoryOptions> = {}): RateLimiterMemory =>
  new RateLimiterMemory({ points: 5, duration: 60, clock, ...options })

test('points are consumed until there are none, and a denial is no error', async () => {
  const limiter = limiterOf()
  clock.set(660_000)
  const first = await limiter.consume('ada', 2)
  assert.deepEqual(first.toJSON(), { remainingPoints: 3, msBeforeNext: 60_000, consumedPoints: 2, isFirstInDuration: true })
  assert.equal(String(first), '{"remainingPoints":3,"msBeforeNext":60000,"consumedPoints":2,"isFirstInDuration":true}')
  clock.advance(20_000)
  assert.deepEqual(await limiter.consume('ada', 3), new RateLimiterRes(0, 40_000, 5, false))
  assert.deepEqual(await denied(limiter, 'ada'), new RateLimiterRes(0, 40_000, 6, false))
  assert.deepEqual(await denied(limiter, 'ada', 4), new RateLimiterRes(0, 40_000, 9, false))
  clock.advance(40_000)
  assert.equal((await limiter.consume('ada')).isFirstInDuration, true)
})

test('what is denied is not counted: what is left stays there', async () => {
  const limiter = limiterOf()
  await limiter.consume('bob', 3)
  assert.deepEqual(await denied(limiter, 'bob', 3), new RateLimiterRes(2, 60_000, 6, false))
  assert.equal((await limiter.consume('bob', 2)).remainingPoints, 0)
})

test('points that there never are say so by the largest number', async () => {
  assert.deepEqual(await denied(limiterOf(), 'eve', 6), new RateLimiterRes(5, Number.MAX_SAFE_INTEGER, 6, false))
})

test('whoever looks sees a key locked out as soon as it is', async () => {
  const limiter = limiterOf()
  assert.equal(await limiter.get('fay'), null)
  await limiter.consume('fay', 4)
  assert.deepEqual(await limiter.get('fay'), new RateLimiterRes(1, 60_000, 4, false))
  await limiter.consume('fay')
  const { consumedPoints, remainingPoints } = (await limiter.get('fay')) as RateLimiterRes
  assert.ok(consumedPoints > limiter.points && remainingPoints === 0)
  await limiter.block('gus', 10)
  assert.deepEqual(await limiter.get('gus'), new RateLimiterRes(0, 10_000, 6, false))
})

test('a login that is guarded by get() and consume() checks no more passwords than there are points', async () => {
  const limiter = limiterOf({ duration: 3600 })
  let checked = 0
  const login = async (password: string): Promise<string> => {
    const known = await limiter.get('ada')
    if (known !== null && known.consumedPoints > limiter.points) return 'locked out'
    checked++
    if (password === 'right') return 'welcome'
    await limiter.consume('ada').catch(() => undefined)
    return 'wrong'
  }
  for (let i = 0; i < 50; i++) await login('guess')
  assert.equal(checked, 5)
  assert.equal(await login('right'), 'locked out')
})

test('penalties go beyond what is there, rewards never below nothing', async () => {
  const limiter = limiterOf()
  assert.deepEqual(await limiter.penalty('ada', 2), new RateLimiterRes(3, 60_000, 2, true))
  assert.equal((await limiter.penalty('ada', 6)).remainingPoints, 0)
  await denied(limiter, 'ada')
  await limiter.reward('ada', 3)
  await denied(limiter, 'ada')
  assert.deepEqual(await limiter.reward('ada'), new RateLimiterRes(1, 60_000, 4, false))
  await limiter.reward('ada', 100)
  assert.equal(await limiter.get('ada'), null)
  assert.equal((await limiter.consume('ada', 5)).remainingPoints, 0)
})

test('a block leaves what was consumed, the longest wins, and delete() lifts it', async () => {
  const limiter = limiterOf()
  await limiter.consume('ada', 2)
  assert.deepEqual(await limiter.block('ada', 10), new RateLimiterRes(0, 10_000, 6, false))
  await limiter.block('ada', 5)
  clock.advance(9_999)
  assert.equal((await denied(limiter, 'ada')).msBeforeNext, 1)
  clock.advance(1)
  assert.equal((await limiter.consume('ada')).remainingPoints, 2)
  await limiter.block('ada', 0)
  clock.advance(86_400_000 * 365)
  assert.ok((await denied(limiter, 'ada')).msBeforeNext > 86_400_000 * 365 * 90, 'for as good as ever')
  assert.equal(await limiter.delete('ada'), true)
  assert.equal(await limiter.delete('ada'), false)
  assert.equal((await limiter.consume('ada')).remainingPoints, 4)
})

test('keys may be numbers, long, and of several prefixes', async () => {
  const limiter = limiterOf()
  await limiter.consume(42)
  assert.equal((await limiter.get('42'))?.consumedPoints, 1)
  await limiter.consume('x'.repeat(9_000))
  assert.equal(await limiter.get('x'.repeat(9_001)), null)
  assert.equal(limiter.limiter.peek('rlflx:42').remaining, 4)
  assert.deepEqual([limiter.getKey(42), limiter.parseKey('rlflx:42')], ['rlflx:42', '42'])
  const bare = limiterOf({ keyPrefix: '', blockDuration: 9 })
  assert.deepEqual([bare.getKey('ada'), bare.parseKey('ada')], ['ada', 'ada'])
  assert.deepEqual([bare.msDuration, bare.msBlockDuration], [60_000, 9_000])
})

test('any limiter can stand behind it', async () => {
  const bucket = createLimiter(tokenBucket({ limit: 60, window: '1m', burst: 3 }), { clock })
  const limiter = new RateLimiterSluicegate({ limiter: bucket })
  assert.deepEqual([limiter.points, limiter.duration], [3, 60])
  await limiter.consume('ada', 3)
  assert.equal((await denied(limiter, 'ada')).msBeforeNext, 1_000)
  assert.equal(bucket.peek('ada').remaining, 0)
  limiter.close()
  assert.equal(bucket.take('bob').allowed, true)
  const permits = createLimiter(concurrency({ limit: 2, ttl: '1s' }))
  assert.throws(() => new RateLimiterSluicegate({ limiter: permits }), { option: 'limiter' })
  assert.throws(() => new RateLimiterSluicegate({ limiter: {} as never }), { option: 'limiter' })
})

test('misuse of a call rejects with an error', async () => {
  const limiter = limiterOf()
  const calls = [
    limiter.consume('ada', 0),
    limiter.consume('ada', 1.5),
    limiter.consume('ada', 1, { customDuration: 5 }),
    limiter.penalty('ada', -1),
    limiter.reward('ada', 1, { nothing: true }),
    limiter.block('ada', -1),
    limiter.set('ada', 3, 60),
  ]
  for (const call of calls) await assert.rejects(call, PolicyError)
  await limiter.consume('ada', 1, {})
  limiter.close()
  await assert.rejects(limiter.consume('ada'), { name: 'StoreError', code: 'CLOSED' })
})

test('options that cannot be honoured say what to write instead; what is turned off is taken', () => {
  const cases: readonly [object, RegExp][] = [
    [{ points: 0 }, /^points: .*block\(\)/],
    [{ points: 2.5 }, /^points: /],
    [{ duration: 0 }, /^duration: .*database/],
    [{ duration: 400 * 86_400 }, /^duration: /],
    [{ blockDuration: -1 }, /^blockDuration: /],
    [{ blockDuration: '5' }, /^blockDuration: /],
    [{ keyPrefix: 7 }, /^keyPrefix: /],
    [{ execEvenly: true }, /^execEvenly: .*gcra/],
    [{ insuranceLimiter: {} }, /^insuranceLimiter: .*outage/],
    [{ inMemoryBlockOnConsumed: 9 }, /^inMemoryBlockOnConsumed: .*leased/],
    [{ blockOnConsumed: 9 }, /^blockOnConsumed: .*blockDuration/],
    [{ storeClient: {} }, /^storeClient: is not one of points/],
  ]
  for (const [options, message] of cases) assert.throws(() => limiterOf(options), { name: 'PolicyError', message })
  assert.equal(limiterOf({ execEvenly: false, inMemoryBlockOnConsumed: 0, insuranceLimiter: undefined } as object).points, 5)
  assert.equal(limiterOf({ storeType: undefined, blockDuration: undefined } as object).points, 5, 'what is undefined is not given')
  assert.throws(() => limiterOf({ storeType: 'redis' } as object), { code: 'OPTION_UNKNOWN', option: 'storeType' })
})
