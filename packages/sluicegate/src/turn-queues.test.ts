import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Booking, BookingDesk } from './booking.js'
import { manualClock } from './clock.js'
import type { Decision } from './decision.js'
import type { Key, WaitOptions } from './limiter.js'
import { Waiting } from './waiting.js'

interface Held {
  readonly key: Key
  readonly cost: number
  readonly untilUs: number
}

const LIMIT = 3
const TTL_MS = 100

/** Three places for each single key, each for 100 ms at most. A key of several takes places in all of them. */
function fixture(options: { limit?: number; maxWaiters?: number } = {}) {
  const { maxWaiters = 1000 } = options
  const limits = { now: options.limit ?? LIMIT }
  const clock = manualClock(5_000)
  const nowUs = (): number => Math.round(clock.nowMs() * 1000)
  let all: Held[] = []
  let asked = 0
  const sharing = (key: Key): Held[] => all.filter((held) => held.untilUs > nowUs() && [held.key].flat().some((one) => [key].flat().includes(one)))
  const used = (key: Key): number => sharing(key).reduce((sum, { cost }) => sum + cost, 0)
  const decision = (allowed: boolean, key: Key, cost: number): Decision => {
    const ends = sharing(key).map(({ untilUs }) => untilUs - nowUs())
    const retryAfterMs = allowed ? 0 : cost > limits.now ? Number.POSITIVE_INFINITY : Math.ceil(Math.min(...ends) / 1000)
    return { allowed, limit: limits.now, remaining: limits.now - used(key), retryAfterMs, resetAfterMs: 0, policy: 'places', source: 'memory' }
  }
  const desk: BookingDesk<Decision> = {
    book(key, cost) {
      asked++
      const allowed = used(key) + cost <= limits.now
      if (allowed) all.push({ key, cost, untilUs: nowUs() + TTL_MS * 1000 })
      const answer = decision(allowed, key, cost)
      return { key, cost, allowed, bookedUs: nowUs(), atUs: nowUs() + answer.retryAfterMs * 1000, maybeSooner: true, decision: answer }
    },
    answer: ({ decision }: Booking) => decision,
    giveBack: ({ key, cost }) => decision(true, key, cost),
    refuse: (key, cost) => {
      const answer = decision(false, key, cost)
      return answer.retryAfterMs === Number.POSITIVE_INFINITY || used(key) > 0 ? answer : { ...answer, retryAfterMs: 1 }
    },
  }
  const waiting = new Waiting<Decision>({ desk, clock, maxWaiters })
  const log: string[] = []
  return {
    clock,
    waiting,
    log,
    limits,
    asked: () => asked,
    take: (key: Key, cost = 1): boolean => !waiting.isQueued(key) && desk.book(key, cost, 0).allowed,
    wait: (name: string, options?: WaitOptions, key: Key = 'k'): Promise<unknown> =>
      waiting.wait(key, options).then(
        ({ allowed, retryAfterMs }) => log.push(allowed ? name : `${name} denied for ${retryAfterMs}`),
        (reason) => log.push(`${name}: ${reason instanceof Error ? (reason as { code?: unknown }).code : reason}`),
      ),
    /** One place of this key comes back. */
    release: (key: Key): void => {
      const i = all.findIndex((held) => String(held.key) === String(key))
      all = all.filter((_, at) => at !== i)
      waiting.released(key)
    },
  }
}

async function settled(): Promise<void> {
  for (let i = 0; i < 8; i++) await Promise.resolve()
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

test('a take does not overtake those who wait, also when it would fit', async () => {
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

test('maxWaitMs ends the wait with a denial, a place that comes in time is taken', async () => {
  const { wait, log, take, clock, release, waiting } = fixture()
  take('k', 3)
  await wait('none', { maxWaitMs: 0 })
  void wait('first', { maxWaitMs: 30 })
  void wait('second', { maxWaitMs: 20 })
  void wait('third', { maxWaitMs: 40 })
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

test('what can never pass is denied at once, also behind others', async () => {
  const { wait, log, take } = fixture()
  take('k', 3)
  await wait('first', { cost: 4 })
  void wait('a')
  await wait('second', { cost: 4 })
  assert.deepEqual(log, ['first denied for Infinity', 'second denied for Infinity'])
})

test('who can no longer pass after a change of the limit is denied, and those behind go on', async () => {
  const { wait, log, take, limits, release } = fixture()
  take('k', 3)
  void wait('big', { cost: 3 })
  void wait('small')
  limits.now = 2
  release('k')
  await settled()
  assert.deepEqual(log, ['big denied for Infinity', 'small'])
})

test('with maxWaiters waiting others are denied', async () => {
  const { wait, log, take } = fixture({ maxWaiters: 1 })
  take('k', 3)
  void wait('a')
  await wait('b')
  await wait('c', {}, 'other')
  assert.deepEqual(log, ['b denied for 100', 'c'])
})

test('an abort of thousands asks the desk once for those that stay', async () => {
  const { wait, log, take, asked, waiting } = fixture({ maxWaiters: 10_000 })
  take('k', 3)
  const controller = new AbortController()
  for (let i = 0; i < 5000; i++) void wait('gone', { signal: controller.signal })
  void wait('stays')
  const before = asked()
  controller.abort('shutdown')
  await settled()
  assert.deepEqual([asked() - before, log.length, waiting.size], [1, 5000, 1])
})

test('close rejects all who wait', async () => {
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

test('keys of several are never taken for one another or for a single one', async () => {
  const { wait, take, waiting } = fixture()
  take(['a', 'b'], 3)
  void wait('x', {}, ['a', 'b'])
  const others: readonly Key[] = ['a', '["a","b"]', 'n["a","b"]', ['a,b'], ['a', 'b', ''], ['b', 'a'], ['a"', '"b']]
  assert.equal(waiting.isQueued(['a', 'b']), true)
  assert.deepEqual(others.filter((key) => waiting.isQueued(key)), [])
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
