import assert from 'node:assert/strict'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { test } from 'node:test'
import {
  allOf,
  attachLimiter,
  createLimiter,
  type Decision,
  type Limiter,
  type LimiterOptions,
  manualClock,
  tokenBucket,
} from '../index.js'

const POLICY = tokenBucket({ limit: 10, window: '1s', burst: 20 })
const COMMON = { limit: 10, resetAfterMs: 0, policy: POLICY.name, source: 'memory' } as const
const PASSES: Decision = { allowed: true, remaining: 20, retryAfterMs: 0, ...COMMON }
const NEVER: Decision = { allowed: false, remaining: 0, retryAfterMs: Number.POSITIVE_INFINITY, ...COMMON }
/** Each verb on a key, as far as it answers with a decision. */
const VERBS: readonly ((limiter: Limiter, key: string) => Decision)[] = [
  (limiter, key) => limiter.take(key, 50),
  (limiter, key) => limiter.peek(key, 50),
  (limiter, key) => limiter.key(key).take(50),
  (limiter, key) => limiter.key(key).peek(50),
  (limiter, key) => limiter.refund(key, 5),
  (limiter, key) => limiter.penalize(key, 5),
  (limiter, key) => limiter.block(key, '1h'),
  (limiter, key) => limiter.reset(key),
  (limiter, key) => limiter.reserve(key, 50).decision,
  (limiter, key) => limiter.reserve(key, 50).settle(70),
  (limiter, key) => limiter.reserve(key, 50).cancel(),
]

function listed(options: LimiterOptions): Limiter {
  return createLimiter(POLICY, { clock: manualClock(1_789_000_000_000), ...options })
}

test('a key on the allow list passes uncounted, whatever is asked of it', () => {
  const limiter = listed({ allow: ['friend'] })
  for (const verb of VERBS) for (let i = 0; i < 30; i++) assert.deepEqual(verb(limiter, 'friend'), PASSES)
  assert.equal(limiter.stats().keys, 0)
})

test('a key on the deny list never passes, and nothing is kept about it', () => {
  const limiter = listed({ deny: ['foe'], hotKeys: 5 })
  for (const verb of VERBS) assert.deepEqual(verb(limiter, 'foe'), NEVER)
  assert.equal(limiter.stats().keys, 0)
  assert.deepEqual(limiter.hotKeys(), { demand: [], denials: [] })
})

test('a key on both lists is denied', () => {
  assert.deepEqual(listed({ allow: ['k'], deny: ['k'] }).take('k'), NEVER)
})

test('a key on no list is limited as ever', () => {
  const limiter = listed({ allow: ['friend'], deny: ['foe'] })
  const plain = listed({})
  for (const verb of VERBS.slice(0, 8)) assert.deepEqual(verb(limiter, 'k'), verb(plain, 'k'))
  limiter.take('k', 20)
  assert.equal(limiter.take('k').allowed, false)
  assert.equal(limiter.stats().keys, plain.stats().keys)
})

test('a list is read once, whatever iterable it comes as', () => {
  const foes = new Set(['foe'])
  const limiter = listed({ deny: foes, allow: new Map([['friend', 1]]).keys() })
  foes.add('k')
  assert.deepEqual([limiter.take('foe'), limiter.take('friend'), limiter.take('k').allowed], [NEVER, PASSES, true])
})

test('a function is asked each time, also by a key that was hashed once', () => {
  const foes = new Set<string>()
  const limiter = listed({ deny: (key) => foes.has(key) })
  const bound = limiter.key('k')
  assert.equal(bound.take().remaining, 19)
  foes.add('k')
  assert.deepEqual([bound.take(), bound.peek(), limiter.take('k')], [NEVER, NEVER, NEVER])
  foes.clear()
  assert.deepEqual([bound.take().remaining, bound.peek().remaining], [18, 18])
})

test('a function that answers with a promise is refused, not taken for yes', () => {
  for (const option of ['allow', 'deny']) {
    const limiter = listed({ [option]: async () => false })
    assert.throws(() => limiter.take('k'), { code: 'OPTION_INVALID', option })
  }
})

test('misuse is refused for listed keys as for others', () => {
  const limiter = listed({ allow: (key) => key === 'friend', deny: ['foe'] })
  for (const key of ['friend', 'foe', 'k']) {
    assert.throws(() => limiter.take(key, 0), { code: 'COST_INVALID', option: 'cost' })
    assert.throws(() => limiter.peek(key, 1.5), { code: 'COST_INVALID', option: 'cost' })
    assert.throws(() => limiter.key(key).take(-1), { code: 'COST_INVALID', option: 'cost' })
    assert.throws(() => limiter.refund(key, 0), { code: 'COST_INVALID', option: 'tokens' })
    assert.throws(() => limiter.penalize(key, 0), { code: 'COST_INVALID', option: 'tokens' })
    assert.throws(() => limiter.block(key, -1), { code: 'DURATION_INVALID' })
  }
  assert.throws(() => limiter.reserve('friend', 5).settle(-1), { code: 'COST_INVALID', option: 'actualCost' })
  for (const key of ['', 'x'.repeat(1025), 5, null, ['friend'], ['foe'], []]) {
    assert.throws(() => limiter.take(key as string), { code: 'KEY_INVALID', option: 'key' })
  }
})

test('a wait of a listed key is over at once', async () => {
  const limiter = listed({ allow: ['friend'], deny: ['foe'] })
  assert.deepEqual(await limiter.wait('friend', { cost: 50 }), PASSES)
  assert.deepEqual(await limiter.wait('foe'), NEVER)
  const reason = new Error('no longer wanted')
  for (const key of ['friend', 'foe']) await assert.rejects(limiter.wait(key, { signal: AbortSignal.abort(reason) }), reason)
  await assert.rejects(limiter.wait('foe', { cost: 0 }), { code: 'COST_INVALID' })
  await assert.rejects(limiter.wait('foe', { within: 5 } as never), { code: 'OPTION_UNKNOWN', option: 'within' })
})

test('a reservation of a listed key is for now or never', () => {
  const limiter = listed({ allow: ['friend'], deny: ['foe'] })
  const [now, never] = [limiter.reserve('friend', 50), limiter.reserve('foe', 1)]
  assert.deepEqual([now.allowed, now.waitMs, never.allowed, never.waitMs], [true, 0, false, Number.POSITIVE_INFINITY])
  assert.deepEqual([now.settle(0), never.settle(0)], [PASSES, NEVER])
})

test('listed keys show the policy in force', () => {
  const limiter = listed({ allow: ['friend'], deny: ['foe'] })
  limiter.update(tokenBucket({ limit: 7, window: '1s', name: 'seven' }))
  const { limit, remaining, policy } = limiter.take('friend')
  assert.deepEqual([limit, remaining, policy, limiter.take('foe').limit], [7, 7, 'seven', 7])
})

test('subscribers hear of every denial by the list', () => {
  const limiter = listed({ deny: ['foe'] })
  const heard: unknown[] = []
  const listen = (event: unknown): void => void heard.push(event)
  subscribe('sluicegate:denial', listen)
  limiter.take('foe', 3)
  limiter.peek('foe')
  unsubscribe('sluicegate:denial', listen)
  assert.deepEqual(heard, [{ policy: POLICY.name, key: 'foe', cost: 3, decision: NEVER }])
})

test('a closed limiter is closed for listed keys too', async () => {
  const limiter = listed({ allow: ['friend'], deny: ['foe'] })
  limiter.close()
  for (const key of ['friend', 'foe', 'k']) assert.throws(() => limiter.take(key), { code: 'CLOSED' })
  for (const key of ['friend', 'foe']) await assert.rejects(limiter.wait(key), { code: 'CLOSED' })
})

test('lists travel to other threads, which may bring their own', () => {
  const limiter = listed({ allow: ['friend'], deny: ['foe'] })
  const attached = attachLimiter(structuredClone(limiter.handle()))
  assert.deepEqual([attached.take('friend'), attached.take('foe')], [PASSES, NEVER])
  attached.take('k', 20)
  assert.equal(limiter.take('k').allowed, false)
  assert.equal(attachLimiter(structuredClone(limiter.handle()), { deny: [] }).take('foe').allowed, true)
})

test('a function does not travel: attach without it is refused', () => {
  const handle = structuredClone(listed({ deny: (key) => key === 'foe' }).handle())
  assert.throws(() => attachLimiter(handle), { code: 'OPTION_INVALID', option: 'deny' })
  assert.deepEqual(attachLimiter(handle, { deny: ['foe'] }).take('foe'), NEVER)
})

test('what is no list of keys is refused', () => {
  for (const option of ['allow', 'deny']) {
    for (const list of ['k', 5, null, {}, true, ['k', 5], new Map([['k', 1]])]) {
      assert.throws(() => listed({ [option]: list }), { name: 'PolicyError', code: 'OPTION_INVALID', option }, String(list))
    }
  }
})

test('lists ask for the policy of several keys only when they decide about them', () => {
  const limiter = createLimiter(allOf([POLICY, tokenBucket({ limit: 5, window: '1s' })]), { allow: ['friend'], deny: ['foe'] })
  const { inner } = limiter as unknown as { inner: Limiter }
  const { policy } = inner
  let reads = 0
  Object.defineProperty(inner, 'policy', {
    get() {
      reads++
      return policy
    },
  })
  assert.equal(limiter.take(['a', 'b']).allowed, true)
  assert.equal(reads, 0)
  assert.equal(limiter.take(['a', 'foe']).allowed, false)
  assert.ok(reads > 0)
})
