import assert from 'node:assert/strict'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { longTest } from 'sluicegate-testkit'
import { allOf, attachLimiter, concurrency, createLimiter, manualClock, restoreLimiter, slidingLog, tokenBucket } from '../index.js'
import { SharedName } from './all-of-policy.js'
import type { AllOfHandle, MemoryAllOfLimiter } from './memory-all-of.js'
import type { Core } from './open-core.js'

const START_MS = 1_789_000_000_000
const clockAt = manualClock

test('I12: an update that fails in one policy leaves all of them as they were', () => {
  const bucket = (limit: number) => tokenBucket({ limit, window: '1s', name: 'bucket' })
  const log = (limit: number) => slidingLog({ limit, window: '1h', name: 'log' })
  const limiter = createLimiter(allOf([bucket(10), log(10)], { name: 'before' }), { clock: clockAt(START_MS), maxKeys: 20_000 })
  limiter.take('k', 4)
  assert.throws(() => limiter.update(allOf([bucket(99), log(100_000)], { name: 'after' })), { code: 'RANGE_UNSUPPORTED' })
  const { name, policies = [] } = limiter.policy
  assert.deepEqual([name, ...policies.map(({ limit }) => limit)], ['before', 10, 10])
  assert.deepEqual(
    limiter.peek('k').parts?.map(({ remaining }) => remaining),
    [6, 6],
  )
})

test('another name is known to every thread, and to a snapshot', () => {
  const policy = (name: string) => allOf([tokenBucket({ limit: 5, window: '1s' })], { name })
  const limiter = createLimiter(policy('first'), { clock: clockAt(START_MS) })
  const attached = attachLimiter(structuredClone(limiter.handle()))
  assert.equal(attached.policy.name, 'first')
  limiter.update(policy('a second, longer one'))
  assert.equal(attached.policy.name, 'a second, longer one')
  attached.update(policy('third'))
  assert.deepEqual([limiter.policy.name, restoreLimiter(limiter.snapshot()).policy.name], ['third', 'third'])
})

test('the policy is one object until it changes in any thread, and decisions see it without another read', () => {
  const policy = (limit: number, name: string) =>
    allOf([tokenBucket({ limit, window: '1s' }), slidingLog({ limit: 9, window: '1m' })], { name })
  const limiter = createLimiter(policy(5, 'first'), { clock: clockAt(START_MS) }) as MemoryAllOfLimiter
  const attached = attachLimiter(structuredClone(limiter.handle())) as MemoryAllOfLimiter
  const { policy: first } = attached
  for (let i = 0; i < 3; i++) {
    attached.take('k')
    assert.equal(attached.policyOf(), first)
    assert.equal(attached.policy, first)
  }
  for (const next of [policy(6, 'first'), policy(6, 'second')]) {
    limiter.update(next)
    attached.take('k')
    assert.deepEqual(attached.policyOf(), next)
    assert.equal(attached.policyOf(), attached.policy)
  }
  // Written after the parts, and so perhaps seen after them.
  new SharedName((limiter.handle() as AllOfHandle).name).text = 'third'
  assert.deepEqual([attached.policy.name, attached.policyOf().name], ['third', 'third'])
})

test('a bound key stays that of the keys that it was made with', () => {
  const once = allOf([tokenBucket({ limit: 1, window: '1h' }), tokenBucket({ limit: 5, window: '1h', name: 'team' })])
  const limiter = createLimiter(once, { clock: clockAt(START_MS) })
  const key = ['ann', 'team']
  const bound = limiter.key(key)
  assert.equal(bound.take().allowed, true)
  key[0] = 'bob'
  assert.deepEqual([bound.take().allowed, bound.key, bound.peek().allowed], [false, ['ann', 'team'], false])
  assert.deepEqual(
    [bound.peek(1).parts?.map(({ remaining }) => remaining), limiter.peek(['bob', 'team']).allowed],
    [limiter.peek(['ann', 'team']).parts?.map(({ remaining }) => remaining), true],
  )
})

test('six who pass in the end are six requests and no denial, however often they had to ask', async () => {
  const policy = allOf([concurrency({ limit: 1, ttl: '30s' }), tokenBucket({ limit: 1000, window: '1s' })])
  const limiter = createLimiter(policy, { clock: clockAt(START_MS), maxKeys: 10, hotKeys: 10 })
  let denials = 0
  const hear = (): void => void denials++
  subscribe('sluicegate:denial', hear)
  try {
    const permits = [limiter.take('k')]
    const waits = Array.from({ length: 5 }, () => limiter.wait('k').then((permit) => permits.push(permit)))
    for (let i = 0; i < 6; i++) {
      await nextTurn()
      permits[i]?.release()
    }
    await Promise.all(waits)
  } finally {
    unsubscribe('sluicegate:denial', hear)
  }
  const hot = limiter.hotKeys()
  assert.deepEqual([denials, hot.demand[0]?.count, hot.denials], [0, 6, []])
})

test('a call in contention backs off, is counted, and is reported with its key', () => {
  const limiter = createLimiter(allOf([tokenBucket({ limit: 5, window: '1s' })], { name: 'all' }), { clock: clockAt(START_MS) })
  limiter.peek('k')
  const { first } = limiter as unknown as { first: { core: Core } }
  const { core } = first
  const { commit } = core
  const pauses: number[] = []
  core.yieldAfter = (lost) => void pauses.push(lost)
  const heard: unknown[] = []
  const hear = (event: unknown): void => void heard.push(event)
  subscribe('sluicegate:contention', hear)
  try {
    core.commit = (descriptor) => {
      core.closeDescriptor(descriptor)
      return false
    }
    assert.throws(() => limiter.take(['k']), { name: 'StoreError', code: 'CONTENTION' })
  } finally {
    unsubscribe('sluicegate:contention', hear)
    core.commit = commit
  }
  assert.deepEqual(heard, [{ policy: 'all', key: ['k'] }])
  assert.equal(limiter.stats().contentions, 1)
  assert.deepEqual(
    pauses,
    Array.from({ length: 100 }, (_, i) => i + 1),
  )
  assert.equal(limiter.take(['other']).allowed, true)
})

// A short run has no memory of this size: its offsets are the only ones beyond 31 bits.
longTest('sections beyond 2 GiB are as good as any other', () => {
  const clock = manualClock(1_789_000_000_000)
  const logs = (limit: number) => allOf(['a', 'b', 'c'].map((name) => slidingLog({ limit, window: '1s', name })))
  const limiter = createLimiter(logs(1300), { clock })
  assert.ok(limiter.stats().memoryBytes > 3 * 2 ** 30)
  assert.equal(limiter.take('ada', 1000).remaining, 300)
  limiter.update(logs(1200))
  assert.equal(limiter.take('ada', 300).allowed, false)
  const restored = restoreLimiter(limiter.snapshot(), { clock })
  assert.deepEqual(
    restored.peek('ada').parts?.map(({ remaining }) => remaining),
    [200, 200, 200],
  )
})
