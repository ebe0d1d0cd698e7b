import assert from 'node:assert/strict'
import { test } from 'node:test'
import { microtasks } from 'sluicegate-testkit/turns.js'
import { createLimiter, manualClock, tokenBucket } from '../index.js'
import { casStore } from '../store/cas.js'
import { memoryStore } from '../store-testing/memory-store.js'

const START_MS = 1_760_000_000_000
const SMALL = tokenBucket({ limit: 1, window: '1m' })
const LARGE = tokenBucket({ limit: 2, window: '1m', burst: 5 })

test('an override that makes room is felt at once by those who wait, in their order, and leaves nothing charged elsewhere', async () => {
  const clock = manualClock(START_MS)
  const limiter = createLimiter(SMALL, { clock, overrides: true })
  limiter.take('k')
  const passed: string[] = []
  const controller = new AbortController()
  const wait = (name: string, options = {}): void => {
    limiter.wait('k', options).then(
      ({ allowed }) => passed.push(`${name} ${allowed} at ${clock.nowMs() - START_MS}`),
      () => passed.push(`${name} gave up`),
    )
  }
  wait('a')
  wait('b', { signal: controller.signal })
  void limiter.run('k', () => passed.push(`job at ${clock.nowMs() - START_MS}`))
  wait('c', { maxWait: 300_000, cost: 1 })
  wait('d', { maxWait: 400_000 })
  await microtasks(60)
  clock.advance(1_000)
  limiter.overrides.set('k', LARGE)
  controller.abort()
  await microtasks(60)
  assert.deepEqual(passed.toSorted(), ['a true at 1000', 'b gave up', 'c true at 1000', 'd true at 1000', 'job at 1000'])
  assert.deepEqual(
    passed.filter((one) => one.includes('true')).map(([name]) => name),
    ['a', 'c', 'd'],
  )
  limiter.overrides.delete('k')
  clock.advance(59_000)
  assert.equal(limiter.take('k').allowed, true, 'only the first take was charged there')
  limiter.close()
})

test('a wait that is given another limit keeps its longest time', async () => {
  const clock = manualClock(START_MS)
  const limiter = createLimiter(SMALL, { clock, overrides: true })
  limiter.take('k')
  const waiting = limiter.wait('k', { maxWait: 70_000 })
  await microtasks(60)
  clock.advance(20_000)
  const twin = tokenBucket({ limit: 1, window: '2m' })
  limiter.overrides.set('k', twin)
  limiter.take('k')
  await microtasks(60)
  assert.equal((await waiting).allowed, false)
  limiter.close()
})

for (const where of ['memory', 'store']) {
  test(`waits in ${where} follow their key when policyFor answers otherwise, in their order, within a second`, async () => {
    const clock = manualClock(START_MS)
    let plan = SMALL
    const options = { clock, policyFor: () => plan, policies: [SMALL, LARGE] }
    const limiter =
      where === 'memory'
        ? createLimiter(SMALL, options)
        : createLimiter(SMALL, { store: casStore(memoryStore({ clock })), ...options, mode: 'exact', policies: [SMALL, LARGE] })
    const settle = async (): Promise<void> => {
      for (let i = 0; i < 30; i++) await new Promise(setImmediate)
    }
    await limiter.take('k')
    const passed: string[] = []
    for (const name of ['a', 'b', 'c']) {
      limiter.wait('k').then(
        () => passed.push(`${name} at ${clock.nowMs() - START_MS}`),
        () => undefined,
      )
    }
    await settle()
    plan = LARGE
    for (let ms = 0; ms < 1000; ms += 100) {
      clock.advance(100)
      await settle()
    }
    assert.deepEqual(passed, ['a at 1000', 'b at 1000', 'c at 1000'])
    limiter.close()
  })
}

test('a take under the new policy carries nothing along of what waits had booked under the old one', async () => {
  const clock = manualClock(START_MS)
  let plan = SMALL
  const limiter = createLimiter(SMALL, { clock, policyFor: () => plan, policies: [SMALL, LARGE] })
  limiter.take('k')
  let passed = 0
  for (let i = 0; i < 3; i++) void limiter.wait('k').then(() => passed++)
  await microtasks(60)
  plan = LARGE
  assert.equal(limiter.take('k').remaining, 3)
  await microtasks(60)
  assert.deepEqual([passed, limiter.peek('k').remaining], [3, 0])
  limiter.close()
})
