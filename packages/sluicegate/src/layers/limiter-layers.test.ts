import assert from 'node:assert/strict'
import { test } from 'node:test'
import { emptyPermit } from '../decision/permit.js'
import type { Hold } from '../holds/hold.js'
import { uncountedHold } from '../holds/uncounted-hold.js'
import {
  allOf,
  type BoundKey,
  concurrency,
  type Decision,
  type Limiter,
  type LimiterHandle,
  type Permit,
  type Policy,
  type Reservation,
  tokenBucket,
} from '../index.js'
import type { ReserveOptions, WaitOptions } from '../limiter.js'
import { queueOf } from '../queue/create-queue.js'
import { toMs } from '../time/duration.js'
import { type LayerOptions, layered } from './limiter-layers.js'

const TEN = tokenBucket({ limit: 10, window: '1s', name: 'ten' })
const PRO = tokenBucket({ limit: 100, window: '1s', name: 'pro' })
const SLOTS = concurrency({ limit: 2 })

/**
 * A limiter that never refills, of all keys as one: the least that has permits, answers in parts, and reservations with a wait of
 * 1 ms a missing token.
 */
class Counter implements Limiter<Decision> {
  readonly policy: Policy
  readonly calls: string[] = []
  spent = 0
  readonly run: Limiter['run'] = (key, fn, options) => this.queue.run(key, fn, options)
  readonly wrap: Limiter['wrap'] = (fn, options) => this.queue.wrap(fn, options)

  constructor(policy: Policy) {
    this.policy = policy
  }

  get queue(): Limiter['queue'] {
    return queueOf(this)
  }

  take(_key: unknown, cost = 1): Decision {
    this.calls.push('take')
    const decision = this.peek(_key, cost)
    if (!decision.allowed) return this.policy.algorithm === 'concurrency' ? new CounterPermit(decision, () => false) : decision
    this.spent += cost
    let isHeld = true
    const release = (): boolean => {
      if (!isHeld) return false
      isHeld = false
      this.spent -= cost
      return true
    }
    const taken = { ...decision, remaining: this.policy.burst - this.spent }
    return this.policy.algorithm === 'concurrency' ? new CounterPermit(taken, release) : taken
  }

  peek(_key: unknown, cost = 1): Decision {
    const { limit, burst, name, policies } = this.policy
    const missing = this.spent + cost - burst
    const decision: Decision = {
      allowed: missing <= 0,
      limit,
      remaining: Math.max(0, burst - this.spent),
      retryAfterMs: cost > burst ? Number.POSITIVE_INFINITY : Math.max(0, missing),
      resetAfterMs: this.spent,
      policy: name,
      source: 'memory',
    }
    return policies === undefined ? decision : { ...decision, parts: [decision, decision] }
  }

  async wait(key: unknown, { cost = 1 }: WaitOptions = {}): Promise<Decision> {
    return this.take(key, cost)
  }

  open(key: unknown): Hold {
    this.calls.push('open')
    return uncountedHold(this.peek(key))
  }

  reserve(_key: unknown, cost: number, { maxWait = Number.MAX_VALUE }: ReserveOptions = {}): Reservation {
    const { retryAfterMs } = this.peek(_key, cost)
    const allowed = retryAfterMs <= toMs(maxWait, 'maxWait')
    let held = allowed ? cost : 0
    this.spent += held
    const settle = (actualCost: number): Decision => {
      if (held > 0) this.spent += actualCost - held
      held = 0
      return this.peek(_key)
    }
    return { allowed, waitMs: retryAfterMs, decision: this.peek(_key), settle, cancel: () => settle(0) }
  }

  key(key: string): BoundKey {
    return { key, take: (cost) => this.take(key, cost), peek: (cost) => this.peek(key, cost) }
  }

  snapshot = () => new Uint8Array()
  refund = this.peek
  penalize = this.peek
  block = () => this.peek('k')
  reset = this.peek
  update(): void {}
  handle = (): LimiterHandle => ({ sluicegate: 1 })
  stats = () => ({
    decisions: {},
    keys: 1,
    evictions: 0,
    refusals: 0,
    overflows: 0,
    casRetries: 0,
    contentions: 0,
    memoryBytes: this.spent,
  })
  hotKeys = () => ({ demand: [], denials: [] })
  close(): void {}
  [Symbol.dispose](): void {}
}

/** With its verbs on the prototype, as a class has them. */
class CounterPermit implements Permit {
  declare readonly allowed: boolean
  declare readonly limit: number
  declare readonly remaining: number
  declare readonly retryAfterMs: number
  declare readonly resetAfterMs: number
  declare readonly policy: string
  declare readonly source: Decision['source']
  readonly #release: () => boolean

  constructor(decision: Decision, release: () => boolean) {
    Object.assign(this, decision)
    this.#release = release
  }

  release(): boolean {
    return this.#release()
  }

  heartbeat(): boolean {
    return this.allowed
  }

  async [Symbol.asyncDispose](): Promise<void> {}

  [Symbol.dispose](): void {
    this.release()
  }
}

function around(policy: Policy, options: LayerOptions): { limiter: Limiter<Permit>; counter: Counter } {
  const counter = new Counter(policy)
  return { limiter: layered(policy, () => counter, options) as Limiter<Permit>, counter }
}

test('without any layer the limiter stays plain', () => {
  const { limiter, counter } = around(TEN, {})
  assert.equal(limiter, counter)
})

test('a permit that the shadow lets pass holds nothing, and is like any other to its holder', () => {
  const { limiter, counter } = around(SLOTS, { shadow: true })
  const [first, second, third] = [limiter.take('k'), limiter.take('k'), limiter.key('k').take()]
  assert.deepEqual([first.wouldDeny, second.wouldDeny, third.wouldDeny, third.allowed], [undefined, undefined, true, true])
  assert.deepEqual([third.heartbeat(), third.release(), third.release(), third.heartbeat()], [true, true, false, false])
  assert.equal(counter.spent, 2)
  assert.deepEqual([first.release(), first.release(), counter.spent], [true, false, 1])
})

test('permits of the shadow and of the allow list are over at the end of their block', () => {
  const { limiter } = around(SLOTS, { shadow: true, allow: ['friend'] })
  const permits = [limiter.take('friend'), limiter.take('k', 3)]
  for (const permit of permits) {
    permit[Symbol.dispose]()
    assert.equal(permit.release(), false)
  }
})

test('listed keys get permits that take no place: one to release once, or one that never was', async () => {
  const { limiter, counter } = around(SLOTS, { allow: ['friend'], deny: ['foe'] })
  for (const permit of [limiter.take('friend', 5), await limiter.wait('friend'), limiter.key('friend').take()]) {
    assert.deepEqual([permit.allowed, permit.remaining], [true, 2])
    assert.deepEqual([permit.heartbeat(), permit.release(), permit.release(), permit.heartbeat()], [true, true, false, false])
  }
  for (const permit of [limiter.take('foe'), await limiter.wait('foe'), limiter.key('foe').take()]) {
    assert.deepEqual([permit.allowed, permit.heartbeat(), permit.release()], [false, false, false])
  }
  assert.deepEqual([counter.spent, counter.calls], [0, []])
})

test('an empty permit of a denied decision does nothing', () => {
  const permit = emptyPermit(new Counter(SLOTS).peek('k', 3))
  assert.deepEqual([permit.allowed, permit.release(), permit.heartbeat()], [false, false, false])
})

test('a reservation that passes now is booked in the shadow as ever, and settled as ever', () => {
  const { limiter, counter } = around(TEN, { shadow: true })
  const [first, second] = [limiter.reserve('k', 6), limiter.reserve('k', 4)]
  for (const { allowed, waitMs, decision } of [first, second]) assert.deepEqual([allowed, waitMs, decision.wouldDeny], [true, 0, undefined])
  assert.equal(counter.spent, 10)
  assert.deepEqual([first.settle(7).wouldDeny, counter.spent], [true, 11])
  second.cancel()
  assert.equal(counter.spent, 7)
})

test('a reservation that would have to wait, or could never be, passes in the shadow and charges nothing, settled or not', () => {
  const { limiter, counter } = around(TEN, { shadow: true })
  limiter.take('k', 8)
  for (const cost of [3, 11]) {
    const reservation = limiter.reserve('k', cost)
    const { allowed, waitMs, decision } = reservation
    assert.deepEqual([allowed, waitMs, decision.allowed, decision.retryAfterMs, decision.wouldDeny], [true, 0, true, 0, true])
    assert.deepEqual(
      [reservation.settle(50).remaining, reservation.settle(0).remaining, reservation.cancel().remaining, counter.spent],
      [2, 2, 2, 8],
    )
    assert.throws(() => reservation.settle(-1), { code: 'COST_INVALID', option: 'actualCost' })
  }
})

test('a reservation that another thread made late is not charged, and no caller waits for it', () => {
  const { limiter, counter } = around(TEN, { shadow: true })
  const { peek } = counter
  counter.peek = (key, cost) => {
    const foreseen = peek.call(counter, key, cost)
    counter.peek = peek
    counter.spent = 10
    return foreseen
  }
  const reservation = limiter.reserve('k', 4)
  const { allowed, waitMs, decision } = reservation
  assert.deepEqual([allowed, waitMs, decision.allowed, decision.wouldDeny, counter.spent], [true, 0, true, true, 10])
  reservation.settle(6)
  reservation.cancel()
  assert.equal(counter.spent, 10)
})

test('of several keys one on the deny list denies the whole; all have to be on the allow list to pass', () => {
  const both = allOf([TEN, PRO])
  const { limiter, counter } = around(both, { allow: ['a', 'b'], deny: ['foe'] })
  const passes = limiter.take(['a', 'b'], 50)
  assert.deepEqual([passes.allowed, passes.policy, passes.limit, passes.remaining], [true, 'ten', 10, 10])
  assert.deepEqual(
    passes.parts?.map(({ policy, allowed, remaining }) => [policy, allowed, remaining]),
    [
      ['ten', true, 10],
      ['pro', true, 100],
    ],
  )
  for (const keys of [
    ['a', 'foe'],
    ['foe', 'k'],
  ]) {
    const denied = limiter.take(keys)
    assert.deepEqual([denied.allowed, denied.retryAfterMs, denied.policy], [false, Number.POSITIVE_INFINITY, 'ten'])
    assert.deepEqual(
      denied.parts?.map(({ allowed }) => allowed),
      [false, false],
    )
  }
  assert.deepEqual(counter.calls, [])
  for (const keys of [
    ['a', 'k'],
    ['k', 'b'],
    ['k', 'k'],
  ])
    limiter.take(keys)
  assert.equal(counter.spent, 3)
})

test('the parts of an answer from the shadow say which of them would have denied', () => {
  const { limiter } = around(allOf([TEN, PRO]), { shadow: true })
  const { allowed, wouldDeny, parts } = limiter.take('k', 11)
  assert.deepEqual([allowed, wouldDeny, parts?.map((part) => part.allowed)], [true, true, [false, false]])
})
