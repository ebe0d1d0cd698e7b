import assert from 'node:assert/strict'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { test } from 'node:test'
import { Random } from 'sluicegate-testkit'
import {
  attachLimiter,
  type ChannelMessages,
  createLimiter,
  type Decision,
  type Limiter,
  type LimiterOptions,
  manualClock,
  tokenBucket,
} from '../index.js'

const TEN = tokenBucket({ limit: 10, window: '1s' })

function pair(options: LimiterOptions = {}) {
  const clock = manualClock(1_789_000_000_000)
  return { clock, plain: createLimiter(TEN, { ...options, clock }), shadow: createLimiter(TEN, { ...options, clock, shadow: true }) }
}

/** What the shadow makes of an answer. */
function passed(decision: Decision): Decision {
  return decision.allowed ? decision : { ...decision, allowed: true, retryAfterMs: 0, wouldDeny: true }
}

test('a shadow limiter lets a denial pass, says so, and keeps the rest of the answer', () => {
  const { shadow } = pair()
  assert.deepEqual([shadow.take('k', 10).allowed, shadow.take('k').wouldDeny], [true, true])
  const denied = { allowed: true, limit: 10, remaining: 0, retryAfterMs: 0, resetAfterMs: 1000 }
  const expected = { ...denied, policy: 'token-bucket-10-1s', source: 'memory', wouldDeny: true }
  assert.deepEqual(shadow.take('k'), expected)
  assert.deepEqual(shadow.peek('k'), expected)
  assert.equal(shadow.take('fresh', 11).wouldDeny, true)
})

test('a shadow limiter counts, through every verb, exactly as a plain one', () => {
  const random = new Random(4)
  const { clock, plain, shadow } = pair()
  const verbs: readonly ((limiter: Limiter, key: string, n: number) => Decision)[] = [
    (limiter, key, n) => limiter.take(key, n),
    (limiter, key, n) => limiter.key(key).take(n),
    (limiter, key, n) => limiter.peek(key, n),
    (limiter, key, n) => limiter.key(key).peek(n),
    (limiter, key, n) => limiter.refund(key, n),
    (limiter, key, n) => limiter.penalize(key, n),
    (limiter, key, n) => limiter.block(key, n % 3 === 0 ? 0 : n * 10),
    (limiter, key) => limiter.reset(key),
  ]
  let wouldDeny = 0
  for (let i = 0; i < 3000; i++) {
    const verb = random.pick([...verbs, verbs[0], verbs[0], verbs[1]]) as (typeof verbs)[0]
    const key = random.pick(['a', 'b'])
    const n = random.integer(1, 12)
    const answer = verb(shadow, key, n)
    assert.deepEqual(answer, passed(verb(plain, key, n)))
    assert.equal(answer.allowed, true)
    if (answer.wouldDeny) wouldDeny++
    clock.advance(random.integer(0, 300))
  }
  assert.ok(wouldDeny > 500 && wouldDeny < 2500, String(wouldDeny))
})

test('hot keys and subscribers still see what a shadow limiter would have denied', () => {
  const { shadow } = pair({ hotKeys: 5 })
  const heard: unknown[] = []
  const listen = (event: unknown): void => void heard.push(event)
  subscribe('sluicegate:denial', listen)
  for (let i = 0; i < 12; i++) shadow.take('k')
  unsubscribe('sluicegate:denial', listen)
  assert.deepEqual(shadow.hotKeys().denials, [{ key: 'k', count: 2, overcount: 0 }])
  const [first] = heard as ChannelMessages['sluicegate:denial'][]
  assert.deepEqual([heard.length, first?.decision.allowed, first?.decision.retryAfterMs], [2, false, 100])
})

test('in shadow mode no call waits', async () => {
  const { shadow } = pair()
  assert.equal((await shadow.wait('k', { cost: 10 })).wouldDeny, undefined)
  assert.deepEqual(await shadow.wait('k'), shadow.take('k'))
  assert.equal((await shadow.wait('k', { maxWait: 0 })).wouldDeny, true)
})

test('a wait in the shadow rejects as others do: on a signal, on misuse, when closed', async () => {
  const { shadow } = pair()
  const reason = new Error('no longer wanted')
  await assert.rejects(shadow.wait('k', { signal: AbortSignal.abort(reason) }), reason)
  await assert.rejects(shadow.wait('k', { cost: 0 }), { code: 'COST_INVALID' })
  await assert.rejects(shadow.wait('k', { maxWait: -1 }), { code: 'DURATION_INVALID', option: 'maxWait' })
  await assert.rejects(shadow.wait(''), { code: 'KEY_INVALID' })
  shadow.close()
  await assert.rejects(shadow.wait('k'), { code: 'CLOSED' })
})

test('a shadow limiter is updated, counted and closed as any other', () => {
  const { shadow } = pair()
  shadow.take('k', 10)
  shadow.update(tokenBucket({ limit: 5, window: '1s' }))
  assert.deepEqual([shadow.policy.limit, shadow.take('k').limit, shadow.stats().keys], [5, 5, 1])
  shadow.close()
  assert.throws(() => shadow.take('k'), { code: 'CLOSED' })
})

test('a thread that attaches is in the shadow too, unless it says otherwise', () => {
  const { shadow } = pair()
  const attached = attachLimiter(shadow.handle())
  attached.take('k', 10)
  assert.equal(attached.take('k').wouldDeny, true)
  assert.equal(attachLimiter(attached.handle()).take('k').wouldDeny, true)
  assert.equal(attachLimiter(shadow.handle(), { shadow: false }).take('k').allowed, false)
})

test('a plain limiter can be watched from the shadow of one thread', () => {
  const { plain } = pair()
  plain.take('k', 10)
  assert.equal(attachLimiter(plain.handle(), { shadow: true }).take('k').wouldDeny, true)
  assert.equal(plain.take('k').allowed, false)
})

test('shadow is true or false', () => {
  for (const shadow of [null, 1, 'false', {}]) {
    assert.throws(() => createLimiter(TEN, { shadow } as never), { code: 'OPTION_INVALID', option: 'shadow' })
  }
  assert.equal(createLimiter(TEN, { shadow: false }).take('k', 11).allowed, false)
})
