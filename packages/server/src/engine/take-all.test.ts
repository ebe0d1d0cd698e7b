import assert from 'node:assert/strict'
import { once } from 'node:events'
import { test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { fixedWindow, manualClock, PolicyError, slidingLog, tokenBucket } from 'sluicegate'
import { atOnce } from 'sluicegate-testkit/service/running-service.js'
import { answersOf } from './awaitable.js'
import { type Decision, Engine, type ServedPolicy, type TakePart } from './engine.js'
import type { EngineLimiter } from './engine-limiter.js'
import { takeAbove } from './take-above.js'

function setUp() {
  const clock = manualClock(1_000)
  const policies = [
    tokenBucket({ name: 'wide', limit: 10, window: '1m' }),
    fixedWindow({ name: 'narrow', limit: 2, window: '1m' }),
    slidingLog({ name: 'log', limit: 5, window: '1m' }),
  ]
  const engine = new Engine(
    policies.map((policy) => ({ policy, maxKeys: 100, onFull: 'evict' })),
    { clock, hotKeys: 10 },
  )
  const of = (name: string): ServedPolicy => engine.policy(name) ?? assert.fail()
  const left = (name: string, key = 'alice'): number => atOnce(of(name).peek(key, 1)).remaining
  const take = (...parts: TakePart[]): Decision[] => atOnce(engine.takeAll(parts))
  return { engine, of, left, take }
}

test('takes of several policies pass together, and each is charged', () => {
  const { of, left, take } = setUp()
  const decisions = take({ policy: of('wide'), key: 'alice', cost: 3 }, { policy: of('narrow'), key: 'alice', cost: 2 })
  assert.deepEqual(
    decisions.map(({ policy, allowed, remaining }) => [policy, allowed, remaining]),
    [
      ['wide', true, 7],
      ['narrow', true, 0],
    ],
  )
  assert.deepEqual([left('wide'), left('narrow')], [7, 0])
})

test('where one of several takes is denied, nothing is charged, wherever it stands', () => {
  const { of, left, take } = setUp()
  const wide = { policy: of('wide'), key: 'alice', cost: 1 }
  const over = { policy: of('narrow'), key: 'alice', cost: 3 }
  for (const parts of [
    [wide, over],
    [over, wide],
  ]) {
    const decisions = take(...parts)
    assert.deepEqual(
      decisions.map(({ allowed }) => allowed),
      parts.map((part) => part === wide),
    )
  }
  assert.deepEqual([left('wide'), left('narrow')], [10, 2])
})

test('a denial of several takes is counted for the part that is denied, and is in its list of denied keys', () => {
  const { of, take } = setUp()
  of('narrow').take('alice', 2)
  take({ policy: of('wide'), key: 'alice', cost: 1 }, { policy: of('narrow'), key: 'alice', cost: 1 })
  assert.deepEqual(of('narrow').counts, { allowed: 1, denied: 1, impossible: 0, peeks: 0 })
  assert.deepEqual(of('wide').counts, { allowed: 0, denied: 0, impossible: 0, peeks: 1 })
  assert.deepEqual(
    of('narrow')
      .hotKeys(3)
      .denials.map(({ key, count }) => [key, count]),
    [['alice', 1]],
  )
})

test('parts with the same policy and key are charged together or not at all', () => {
  const { of, left, take } = setUp()
  const part = { policy: of('wide'), key: 'alice', cost: 6 }
  assert.deepEqual(
    take(part, part).map(({ allowed }) => allowed),
    [true, false],
  )
  assert.equal(left('wide'), 10)
  assert.ok(take({ ...part, cost: 5 }, { ...part, cost: 5 }).every(({ allowed }) => allowed))
  assert.equal(left('wide'), 0)
})

test('a part that only looks is never charged, and its denial denies the others', () => {
  const { of, left, take } = setUp()
  const look = { policy: of('narrow'), key: 'alice', cost: 1, peekOnly: true }
  const wide = { policy: of('wide'), key: 'alice', cost: 1 }
  assert.ok(take(look, wide).every(({ allowed }) => allowed))
  assert.deepEqual([left('narrow'), left('wide')], [2, 9])
  of('narrow').take('alice', 2)
  assert.deepEqual(
    take(look, wide).map(({ allowed }) => allowed),
    [false, true],
  )
  assert.equal(left('wide'), 9)
  assert.equal(take({ ...look, cost: 2 })[0]?.allowed, false, 'alone as well')
})

test('a shadow part is charged where it can be, denies nothing and says what it would have denied', () => {
  const { of, left, take } = setUp()
  const shadow = { policy: of('narrow'), key: 'alice', cost: 1, shadow: true }
  const wide = { policy: of('wide'), key: 'alice', cost: 1 }
  for (let i = 0; i < 2; i++) take(shadow, wide)
  assert.deepEqual([left('narrow'), left('wide')], [0, 8])
  const [shadowed, real] = take(shadow, wide)
  assert.deepEqual([shadowed?.allowed, shadowed?.wouldDeny, real?.allowed], [true, true, true])
  assert.equal(left('wide'), 7)
  assert.equal(take(shadow)[0]?.wouldDeny, true, 'alone as well')
})

test('a verdict of the caller may let a request pass with denied parts, which are not charged', () => {
  const { engine, of, left } = setUp()
  of('narrow').take('alice', 2)
  const parts = [
    { policy: of('narrow'), key: 'alice', cost: 1 },
    { policy: of('wide'), key: 'alice', cost: 1 },
  ]
  const decisions = atOnce(engine.takeAll(parts, { passes: (each) => each.some(({ allowed }) => allowed) }))
  assert.deepEqual(
    decisions.map(({ allowed }) => allowed),
    [false, true],
  )
  assert.deepEqual([left('narrow'), left('wide')], [0, 9])
})

test('an invalid part throws, and nothing is charged', () => {
  const { engine, of, left } = setUp()
  const wide = { policy: of('wide'), key: 'alice', cost: 1 }
  assert.throws(() => engine.takeAll([wide, { policy: of('log'), key: '', cost: 1 }]), PolicyError)
  assert.throws(() => engine.takeAll([wide, { policy: of('log'), key: 'alice', cost: -1 }]), PolicyError)
  assert.equal(left('wide'), 10)
})

test('policies are added and removed while the engine runs, up to a bound', () => {
  const { engine } = setUp()
  const config = { policy: tokenBucket({ name: 'new', limit: 1, window: '1s' }), maxKeys: 10, onFull: 'evict' } as const
  const served = engine.add(config)
  assert.equal(engine.policy('new'), served)
  assert.throws(() => engine.add(config), { code: 'NAME_INVALID' })
  assert.deepEqual([engine.remove('new'), engine.remove('new')], [true, false])
  assert.equal(engine.policy('new'), undefined)
})

test('values are there at once, and one promise makes all of them come later', async () => {
  assert.deepEqual(
    answersOf(['a', 'b'], (item, i) => item + i),
    ['a0', 'b1'],
  )
  assert.deepEqual(await answersOf([1, 2], (item) => (item === 1 ? Promise.resolve(item) : item)), [1, 2])
})

test('promises before a call that throws are handled: nothing is left to end the process', async (t) => {
  const unhandled = new AbortController()
  t.after(() => unhandled.abort())
  const rejected = once(process, 'unhandledRejection', { signal: unhandled.signal }).then(
    () => assert.fail('a promise was left'),
    () => undefined,
  )
  assert.throws(
    () =>
      answersOf([1, 2], (item) => {
        if (item === 2) throw new RangeError('second')
        return Promise.reject(new Error('first'))
      }),
    RangeError,
  )
  await nextTurn()
  await nextTurn()
  unhandled.abort()
  await rejected
})

const FLOOR = 20

function decision(allowed: boolean, remaining: number): Decision {
  return { allowed, limit: 100, remaining, retryAfterMs: 0, resetAfterMs: 9, policy: 'api', source: 'store' }
}

/** A limiter over a store where a take meets `remaining` tokens that a look before it did not see. */
function racing(remaining: number, cancel: () => Promise<Decision>) {
  const calls: string[] = []
  const limiter = {
    isShared: true,
    policy: { algorithm: 'token-bucket' },
    peek: async () => decision(true, 100),
    reserve: async () => {
      calls.push('reserve')
      return {
        allowed: true,
        waitMs: 0,
        decision: decision(true, remaining),
        cancel: () => {
          calls.push('cancel')
          return cancel()
        },
      }
    },
  } as unknown as EngineLimiter
  return { limiter, calls }
}

test('a take over a store that left enough is not given back', async () => {
  const { limiter, calls } = racing(FLOOR, () => assert.fail())
  assert.equal((await takeAbove(limiter, 'k', 1, FLOOR)).allowed, true)
  assert.deepEqual(calls, ['reserve'])
})

for (const [what, cancel] of [
  ['is given back', async () => decision(true, FLOOR)],
  ['stays charged when the store fails', () => Promise.reject(new Error('the connection broke'))],
] as const) {
  test(`a take over a store that went below the floor is denied, and ${what}`, async () => {
    const { limiter, calls } = racing(FLOOR - 1, cancel)
    const { allowed, retryAfterMs } = await takeAbove(limiter, 'k', 1, FLOOR)
    assert.deepEqual([allowed, retryAfterMs, calls], [false, 1, ['reserve', 'cancel']])
  })
}
