import assert from 'node:assert/strict'
import { test } from 'node:test'
import { denied } from 'sluicegate-testkit/adapters/flexible-denial.js'
import { allOf, concurrency, createLimiter, fixedWindow, manualClock, tokenBucket } from '../../index.js'
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

test('a denial that can never pass has the rest of the window', async () => {
  const limiter = limiterOf()
  assert.deepEqual(await denied(limiter, 'eve', 6), new RateLimiterRes(5, 60_000, 6, false))
  clock.advance(20_000)
  await limiter.consume('eve')
  assert.deepEqual(await denied(limiter, 'eve', 6), new RateLimiterRes(4, 40_000, 7, false))
  clock.advance(40_000)
})

test('a locked key is visible to get as soon as it is locked', async () => {
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

/** What a login says of a password, guarded as rate-limiter-flexible's guides have it. */
async function login(limiter: RateLimiterMemory, password = 'guess'): Promise<string> {
  const known = await limiter.get('ada')
  if (known !== null && known.consumedPoints > limiter.points) return `locked out for ${known.msBeforeNext / 1000} s`
  if (password === 'right') return 'welcome'
  return limiter.consume('ada').then(
    () => 'wrong',
    ({ msBeforeNext }: RateLimiterRes) => `wrong, and locked out for ${msBeforeNext / 1000} s`,
  )
}

test('a login that is guarded by get() and consume() checks no more passwords than there are points', async () => {
  const limiter = limiterOf({ duration: 3600 })
  const said = []
  for (let i = 0; i < 50; i++) said.push(await login(limiter))
  assert.equal(said.filter((word) => word.startsWith('wrong')).length, 5)
  assert.match(await login(limiter, 'right'), /^locked out/)
})

test('such a login locks out for blockDuration, whatever the window', async () => {
  for (const blockDuration of [600, 86_400]) {
    const limiter = limiterOf({ points: 3, duration: 3600, blockDuration })
    clock.set(Math.ceil(clock.nowMs() / 3_600_000) * 3_600_000 + 3_500_000)
    const said = []
    for (let i = 0; i < 6; i++) {
      said.push(await login(limiter))
      clock.advance(10_000)
    }
    assert.deepEqual(said, [
      ...['wrong', 'wrong', 'wrong', `wrong, and locked out for ${blockDuration} s`],
      ...[`locked out for ${blockDuration - 10} s`, `locked out for ${blockDuration - 20} s`],
    ])
    assert.equal(await login(limiter, 'right'), `locked out for ${blockDuration - 30} s`)
    clock.advance(blockDuration * 1000 - 30_000)
    assert.equal(await login(limiter, 'right'), 'welcome')
    assert.equal((await limiter.consume('ada')).remainingPoints, 2)
  }
})

test('where denials block, a key is not shown as locked before it is blocked', async () => {
  const limiter = limiterOf({ blockDuration: 300 })
  clock.set(Math.ceil(clock.nowMs() / 60_000) * 60_000)
  await limiter.consume('ada', 4)
  assert.deepEqual(await limiter.penalty('ada'), new RateLimiterRes(0, 60_000, 5, false))
  assert.deepEqual(await limiter.get('ada'), new RateLimiterRes(0, 60_000, 5, false))
  assert.deepEqual(await denied(limiter, 'ada'), new RateLimiterRes(0, 300_000, 6, false))
  assert.deepEqual(await limiter.get('ada'), new RateLimiterRes(0, 300_000, 6, false))
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

test('of several blocks the longest wins, penalties change nothing of it, and delete() lifts it', async () => {
  const limiter = limiterOf()
  await limiter.consume('ada', 2)
  assert.deepEqual(await limiter.block('ada', 10), new RateLimiterRes(0, 10_000, 6, false))
  await limiter.block('ada', 5)
  clock.advance(9_999)
  assert.deepEqual(await limiter.penalty('ada', 9), new RateLimiterRes(0, 1, 6, false))
  assert.equal((await denied(limiter, 'ada')).msBeforeNext, 1)
  clock.advance(1)
  assert.equal((await limiter.consume('ada')).remainingPoints, 4)
  assert.deepEqual(await limiter.block('ada', 0), new RateLimiterRes(0, -1, 6, false))
  clock.advance(86_400_000 * 365)
  assert.equal((await denied(limiter, 'ada')).msBeforeNext, -1, 'for as good as ever')
  assert.equal((await limiter.get('ada'))?.msBeforeNext, -1)
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

test('of several policies the result has the one whose points it has', async () => {
  const parts = [fixedWindow({ limit: 1, window: '1s' }), fixedWindow({ limit: 5, window: '1m' })]
  const limiter = new RateLimiterSluicegate({ limiter: createLimiter(allOf(parts), { clock }) })
  clock.set(Math.ceil(clock.nowMs() / 60_000) * 60_000)
  assert.deepEqual(await limiter.consume('ada'), new RateLimiterRes(0, 1_000, 1, true))
})

test('the busiest keys are known where that is asked for, and a full table denies', async () => {
  const limiter = limiterOf({ hotKeys: 10, onFull: 'deny', maxKeys: 1, points: 1 })
  for (let i = 0; i < 3; i++) await limiter.consume('ada').catch(() => undefined)
  assert.equal(limiter.limiter.hotKeys().denials[0]?.key, 'rlflx:ada')
  for (let i = 0; i < 500; i++) await limiter.consume(`key ${i}`).catch(() => undefined)
  assert.ok(limiter.limiter.stats().refusals > 0)
})

test('the error of a property that cannot be set has the replacement', () => {
  const limiter = limiterOf({ blockDuration: 9 })
  for (const [name, mend] of [
    ['points', /update/],
    ['duration', /update/],
    ['blockDuration', /another limiter/],
    ['keyPrefix', /another limiter/],
  ] as const) {
    const before = limiter[name]
    assert.throws(() => Object.assign(limiter, { [name]: 7 }), { name: 'PolicyError', option: name, message: mend })
    assert.equal(limiter[name], before)
  }
})

test('misuse of a call rejects with an error', async () => {
  const limiter = limiterOf()
  const calls: readonly [Promise<unknown>, string][] = [
    [limiter.consume('ada', 0), 'points'],
    [limiter.consume('ada', 1.5), 'points'],
    [limiter.consume('ada', 1, { customDuration: 5 }), 'customDuration'],
    [limiter.penalty('ada', -1), 'points'],
    [limiter.reward('ada', 'one' as never), 'points'],
    [limiter.consume('ada', '0' as never), 'points'],
    [limiter.consume('ada', '1.5' as never), 'points'],
    [limiter.reward('ada', 1, { nothing: true }), 'nothing'],
    [limiter.block('ada', -1), 'secDuration'],
    [limiter.block('ada', '1m' as never), 'secDuration'],
    [limiter.set('ada', 3, 60), 'set'],
  ]
  for (const [call, option] of calls) await assert.rejects(call, { name: 'PolicyError', option })
  await limiter.consume('ada', 1, {})
  limiter.close()
  await assert.rejects(limiter.consume('ada'), { name: 'StoreError', code: 'CLOSED' })
})

test('the error of an unsupported option has the replacement; one that is turned off is accepted', () => {
  const cases: readonly [object, RegExp][] = [
    [{ points: 0 }, /^points: .*block\(\)/],
    [{ points: 2.5 }, /^points: /],
    [{ duration: 0 }, /^duration: must be seconds.*31622400.*database.*got 0/],
    [{ duration: 400 * 86_400 }, /^duration: must be seconds.*got 34560000\)/],
    [{ blockDuration: -1 }, /^blockDuration: must be seconds.*got -1\)/],
    [{ blockDuration: '5' }, /^blockDuration: must be seconds/],
    [{ keyPrefix: 7 }, /^keyPrefix: /],
    [{ execEvenly: true }, /^execEvenly: .*gcra/],
    [{ insuranceLimiter: {} }, /^insuranceLimiter: .*outage/],
    [{ inMemoryBlockOnConsumed: 9 }, /^inMemoryBlockOnConsumed: .*leased/],
    [{ inmemoryBlockOnConsumed: 9 }, /^inmemoryBlockOnConsumed: .*leased/],
    [{ redis: {} }, /^redis: is called storeClient/],
    [{ storeType: 'redis' }, /^storeType: .*recognised/],
    [{ blockOnConsumed: 9 }, /^blockOnConsumed: .*blockDuration/],
    [{ storeClient: {} }, /^storeClient: is not one of points/],
  ]
  for (const [options, message] of cases) assert.throws(() => limiterOf(options), { name: 'PolicyError', message })
  assert.equal(limiterOf({ execEvenly: false, inMemoryBlockOnConsumed: 0, insuranceLimiter: undefined } as object).points, 5)
  assert.equal(limiterOf({ nothing: undefined, blockDuration: undefined } as object).points, 5, 'what is undefined is not given')
  assert.throws(() => limiterOf({ point: 5 } as object), { code: 'OPTION_UNKNOWN', option: 'point' })
})

test('a new key is denied by a full table as ever, where its block cannot be noted', async () => {
  const own = createLimiter(fixedWindow({ limit: 1, window: '1d' }), { clock, maxKeys: 100, newcomers: false })
  for (let i = 0; i < 500; i++) own.take(`key ${i}`)
  const limiter = new RateLimiterSluicegate({ limiter: own, blockDuration: 60 })
  assert.ok((await denied(limiter, 'new')) instanceof RateLimiterRes)
})
