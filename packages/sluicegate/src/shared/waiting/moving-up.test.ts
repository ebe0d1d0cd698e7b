import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createLimiter } from '../../create-limiter.js'
import { manualClock, tokenBucket } from '../../index.js'
import { casStore } from '../../store/cas.js'
import { memoryStore } from '../../store-testing/memory-store.js'

const POLICY = tokenBucket({ limit: 10, window: '1s', name: 'up' })

function fixture() {
  const clock = manualClock(1_760_000_000_000)
  const store = memoryStore({ clock })
  const make = () => createLimiter(POLICY, { store: casStore(store), clock, mode: 'exact' })
  const limiter = make()
  const passed: string[] = []
  const settle = async (): Promise<void> => {
    for (let i = 0; i < 12; i++) await new Promise(setImmediate)
  }
  const advanceTo = async (ms: number): Promise<void> => {
    while (clock.nowMs() < 1_760_000_000_000 + ms) {
      clock.advance(10)
      await settle()
    }
  }
  const wait = async (name: string, cost: number, signal?: AbortSignal, from = limiter): Promise<void> => {
    from.wait('k', { cost, ...(signal && { signal }) }).then(
      () => passed.push(`${name} at ${clock.nowMs() - 1_760_000_000_000}`),
      () => passed.push(`${name} gave up`),
    )
    await settle()
  }
  return { clock, limiter, make, passed, settle, advanceTo, wait }
}

test('waits behind one that gives up move up, whatever they cost, and keep their order', async () => {
  const { limiter, passed, advanceTo, wait } = fixture()
  await limiter.take('k', 10)
  const first = new AbortController()
  await wait('a', 8, first.signal)
  await wait('b', 1)
  await wait('c', 2)
  await advanceTo(30)
  first.abort()
  await advanceTo(500)
  assert.deepEqual(passed, ['a gave up', 'b at 100', 'c at 300'])
  limiter.close()
})

test('waits keep their times where another process waits behind them', async () => {
  const { limiter, make, passed, advanceTo, wait } = fixture()
  const other = make()
  await limiter.take('k', 10)
  const first = new AbortController()
  await wait('a', 2, first.signal)
  await wait('b', 1)
  await wait('other', 1, undefined, other)
  await advanceTo(30)
  first.abort()
  await advanceTo(500)
  assert.deepEqual(passed, ['a gave up', 'b at 300', 'other at 400'])
  limiter.close()
  other.close()
})

test('a job behind one that is aborted starts as if that had never come', async () => {
  const { clock, limiter, passed, settle, advanceTo } = fixture()
  await limiter.take('k', 10)
  const first = new AbortController()
  void limiter.run('k', () => 'never', { cost: 8, signal: first.signal }).catch(() => undefined)
  await settle()
  void limiter.run('k', () => passed.push(`ran at ${clock.nowMs() - 1_760_000_000_000}`))
  await advanceTo(30)
  first.abort()
  await advanceTo(300)
  assert.deepEqual(passed, ['ran at 100'])
  limiter.close()
})

test('waits pass at once after a refund, a reset and a new policy', async () => {
  for (const change of ['refund', 'reset', 'update'] as const) {
    const { limiter, passed, settle, advanceTo, wait } = fixture()
    await limiter.take('k', 10)
    await wait('a', 8)
    await advanceTo(10)
    if (change === 'refund') await limiter.refund('k', 8)
    else if (change === 'reset') await limiter.reset('k')
    else limiter.update(tokenBucket({ limit: 100, window: '1s', name: 'up' }))
    await settle()
    await settle()
    assert.deepEqual(passed, ['a at 10'], change)
    limiter.close()
  }
})
