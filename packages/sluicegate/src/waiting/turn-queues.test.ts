import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ManualClock } from 'sluicegate'
import { settled } from 'sluicegate-testkit'
import type { BucketBooking } from 'sluicegate-testkit/booking-bucket.js'
import type { Decision } from '../decision/decision.js'
import type { Key, WaitOptions } from '../limiter.js'
import { type Clock, manualClock } from '../time/clock.js'
import { Waiting } from './waiting.js'

interface Held {
  readonly key: Key
  readonly cost: number
  readonly untilUs: number
}

/**
 * Three places for each single key, each for 100 ms at most; a key of several takes places in all of them. Nothing can be booked
 * ahead. For tests of what stands on a limiter.
 */
class BookingPlaces {
  readonly ttlMs = 100
  limit = 3
  /** How often it was asked for places. */
  asked = 0
  private readonly clock: ManualClock
  private held: Held[] = []

  constructor(clock: ManualClock) {
    this.clock = clock
  }

  book(key: Key, cost: number, _mostMs = 0): BucketBooking {
    this.asked++
    const bookedUs = this.nowUs()
    const allowed = this.used(key) + cost <= this.limit
    if (allowed) this.held.push({ key, cost, untilUs: bookedUs + this.ttlMs * 1000 })
    const decision = this.decision(allowed, key, cost)
    return { key, cost, allowed, bookedUs, atUs: bookedUs + decision.retryAfterMs * 1000, maybeSooner: true, decision }
  }

  redeem({ decision }: BucketBooking): Decision {
    return decision
  }

  giveBack({ key, cost }: BucketBooking, _tokens: number): Decision {
    this.release(key)
    return this.decision(true, key, cost)
  }

  refuse(key: Key, cost: number): Decision {
    const decision = this.decision(false, key, cost)
    return { ...decision, retryAfterMs: this.used(key) > 0 || cost > this.limit ? decision.retryAfterMs : 1 }
  }

  /** What was taken first for exactly this key comes back. */
  release(key: Key): void {
    const first = this.held.find((held) => String(held.key) === String(key))
    this.held = this.held.filter((held) => held !== first)
  }

  private decision(allowed: boolean, key: Key, cost: number): Decision {
    const leftUs = this.sharing(key).map(({ untilUs }) => untilUs - this.nowUs())
    const retryAfterMs = allowed ? 0 : cost > this.limit ? Number.POSITIVE_INFINITY : Math.ceil(Math.min(...leftUs) / 1000)
    const remaining = Math.max(0, this.limit - this.used(key))
    return { allowed, limit: this.limit, remaining, retryAfterMs, resetAfterMs: 0, policy: 'places', source: 'memory' }
  }

  private used(key: Key): number {
    return this.sharing(key).reduce((sum, { cost }) => sum + cost, 0)
  }

  private sharing(key: Key): Held[] {
    const own = [key].flat()
    return this.held.filter((held) => held.untilUs > this.nowUs() && [held.key].flat().some((one) => own.includes(one)))
  }

  private nowUs(): number {
    return Math.round(this.clock.nowMs() * 1000)
  }
}

function fixture({ maxWaiting = 1000 } = {}) {
  const clock = manualClock(5_000)
  let timers = 0
  const counted: Clock = {
    nowMs: clock.nowMs,
    after(ms, fn) {
      timers++
      const cancel = clock.after(ms, () => {
        timers--
        fn()
      })
      return () => {
        timers--
        cancel()
      }
    },
  }
  const places = new BookingPlaces(clock)
  const waiting = new Waiting<Decision>({ service: places, clock: counted, maxWaiting })
  const log: string[] = []
  return {
    clock,
    places,
    waiting,
    log,
    timers: () => timers,
    take: (key: Key, cost = 1): boolean => !waiting.isQueued(key) && places.book(key, cost).allowed,
    wait: (name: string, options?: WaitOptions, key: Key = 'k'): Promise<unknown> =>
      waiting.wait(key, options).then(
        ({ allowed, retryAfterMs }) => log.push(allowed ? name : `${name} denied for ${retryAfterMs}`),
        (reason) => log.push(`${name}: ${reason instanceof Error ? (reason as { code?: unknown }).code : reason}`),
      ),
    release: (key: Key): void => {
      places.release(key)
      waiting.released(key)
    },
  }
}

test('who comes while all places are taken waits, and passes when one is released, in the order of arrival', async () => {
  const { wait, log, release, waiting } = fixture()
  for (const name of ['1', '2', '3', 'a', 'b', 'c']) void wait(name)
  await settled()
  assert.deepEqual([log.join(''), waiting.queued, waiting.size], ['123', 3, 3])
  release('k')
  await settled()
  assert.equal(log.join(''), '123a')
  release('k')
  release('k')
  await settled()
  assert.deepEqual([log.join(''), waiting.queued, waiting.size], ['123abc', 0, 0])
})

test('a take does not overtake waits, even if it would fit', async () => {
  const { wait, log, take, release, waiting } = fixture()
  assert.equal(take('k', 2), true)
  void wait('big', { cost: 3 })
  assert.deepEqual([waiting.isQueued('k'), take('k'), take('other')], [true, false, true])
  release('k')
  await settled()
  assert.deepEqual([log, waiting.isQueued('k')], [['big'], false])
})

test('a small one waits behind a big one, and moves up when the big one gives up', async () => {
  const { wait, log, take } = fixture()
  take('k', 2)
  const controller = new AbortController()
  void wait('big', { cost: 3, signal: controller.signal })
  void wait('small')
  await settled()
  assert.deepEqual(log, [])
  controller.abort('bored')
  await settled()
  assert.deepEqual(log, ['big: bored', 'small'])
})

test('without a release the next passes when a place expires', async () => {
  const { wait, log, take, clock } = fixture()
  take('k', 3)
  void wait('a')
  void wait('b')
  clock.advance(99)
  await settled()
  assert.deepEqual(log, [])
  clock.advance(1)
  await settled()
  assert.deepEqual(log, ['a', 'b'])
})

test('maxWait ends the wait with a denial, a place that comes in time is taken', async () => {
  const { wait, log, take, clock, release, waiting } = fixture()
  take('k', 3)
  await wait('none', { maxWait: 0 })
  void wait('first', { maxWait: 30 })
  void wait('second', { maxWait: 20 })
  void wait('third', { maxWait: 40 })
  await settled()
  assert.deepEqual(log, ['none denied for 100'])
  clock.advance(20)
  clock.advance(10)
  await settled()
  assert.deepEqual(log.slice(1), ['second denied for 80', 'first denied for 70'])
  release('k')
  await settled()
  assert.deepEqual([log[3], waiting.size], ['third', 0])
})

test('a place that comes in the very moment in which a wait ends is taken, and no timer is left behind', async () => {
  const { wait, log, take, clock, timers, places } = fixture()
  take('k', 3)
  void wait('in time', { maxWait: places.ttlMs })
  void wait('too', { maxWait: 2 * places.ttlMs })
  assert.equal(timers(), 1)
  clock.advance(places.ttlMs)
  await settled()
  assert.deepEqual([log, timers()], [['in time', 'too'], 0])
})

test('what can never pass is denied at once, also behind others', async () => {
  const { wait, log, take } = fixture()
  take('k', 3)
  await wait('first', { cost: 4 })
  void wait('a')
  await wait('second', { cost: 4 })
  assert.deepEqual(log, ['first denied for Infinity', 'second denied for Infinity'])
})

test('who can no longer pass after a change of the limit is denied, and those behind go on', async () => {
  const { wait, log, take, places, release } = fixture()
  take('k', 3)
  void wait('big', { cost: 3 })
  void wait('small')
  places.limit = 2
  release('k')
  await settled()
  assert.deepEqual(log, ['big denied for Infinity', 'small'])
})

test('with maxWaiting waiting others are denied', async () => {
  const { wait, log, take } = fixture({ maxWaiting: 1 })
  take('k', 3)
  void wait('a')
  await wait('b')
  await wait('c', {}, 'other')
  assert.deepEqual(log, ['b denied for 100', 'c'])
})

test('an abort of thousands asks the service once for those that stay', async () => {
  const { wait, log, take, places, waiting } = fixture({ maxWaiting: 10_000 })
  take('k', 3)
  const controller = new AbortController()
  for (let i = 0; i < 5000; i++) void wait('gone', { signal: controller.signal })
  void wait('stays')
  const before = places.asked
  controller.abort('shutdown')
  await settled()
  assert.deepEqual([places.asked - before, log.length, waiting.size], [1, 5000, 1])
})

test('aborts one after another ask the service once too, and so does a release that lets one pass', async () => {
  const { wait, take, places, release, waiting } = fixture()
  take('k', 3)
  take('k', 3)
  const controllers = Array.from({ length: 50 }, () => new AbortController())
  for (const { signal } of controllers) void wait('gone', { signal })
  for (const name of ['a', 'b', 'c']) void wait(name, { cost: 2 })
  const before = places.asked
  for (const controller of controllers) controller.abort()
  await settled()
  assert.deepEqual([places.asked - before, waiting.size], [1, 3])
  release('k')
  await settled()
  // One that passes, and the next, which does not.
  assert.deepEqual([places.asked - before, waiting.size], [3, 2])
})

test('close rejects all waits', async () => {
  const { wait, log, take, waiting } = fixture()
  take('k', 3)
  const both = [wait('a'), wait('b')]
  waiting.close()
  await Promise.all(both)
  assert.deepEqual([log, waiting.queued], [['a: CLOSED', 'b: CLOSED'], 0])
})

test('a release of one key of several lets pass all that gain by it, the longest waiting first', async () => {
  const { wait, log, take, release } = fixture()
  take(['ann', 'team'], 2)
  take('team')
  void wait('bob', {}, ['bob', 'team'])
  void wait('ann', {}, ['ann', 'team'])
  void wait('eve', {}, ['eve', 'other'])
  void wait('bob again', {}, ['bob', 'team'])
  await settled()
  assert.deepEqual(log, ['eve'])
  release('team')
  await settled()
  assert.deepEqual(log, ['eve', 'bob'])
  release(['ann', 'team'])
  await settled()
  assert.deepEqual(log, ['eve', 'bob', 'ann', 'bob again'])
})

test('of several keys that gain by a release the one whose first has waited longest goes first', async () => {
  const { wait, log, take, release } = fixture()
  take('team')
  take('team', 2)
  const controller = new AbortController()
  void wait('bob', { signal: controller.signal }, ['bob', 'team'])
  void wait('ann', {}, ['ann', 'team'])
  void wait('bob again', {}, ['bob', 'team'])
  controller.abort('bored')
  await settled()
  release('team')
  await settled()
  assert.deepEqual(log, ['bob: bored', 'ann'])
})

test('keys of several are never taken for one another or for a single one', async () => {
  const { wait, take, waiting } = fixture()
  take(['a', 'b'], 3)
  void wait('x', {}, ['a', 'b'])
  const others: readonly Key[] = ['a', '["a","b"]', 'n["a","b"]', ['a,b'], ['a', 'b', ''], ['b', 'a'], ['a"', '"b']]
  assert.equal(waiting.isQueued(['a', 'b']), true)
  assert.deepEqual(
    others.filter((key) => waiting.isQueued(key)),
    [],
  )
})

test('a caller may change its array of keys after the call', async () => {
  const { wait, log, take, release } = fixture()
  take(['a', 'b'], 3)
  const key = ['a', 'b']
  void wait('x', {}, key)
  key[0] = 'c'
  release(['a', 'b'])
  await settled()
  assert.deepEqual(log, ['x'])
})
