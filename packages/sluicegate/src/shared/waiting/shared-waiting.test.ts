import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fleet, turns } from 'sluicegate-testkit/cluster/channel-pair.js'
import { concurrency, tokenBucket } from '../../index.js'

const ONE = concurrency({ limit: 1, ttl: '1h' })

test('a wait that times out does not end the queue for the waits before it', async () => {
  const { clock, limiter } = fleet(ONE)
  const held = await limiter.take('a')
  const first = limiter.wait('a')
  await turns()
  const hasty = limiter.wait('a', { maxWait: 10 })
  await turns()
  clock.advance(10)
  await turns(12)
  assert.equal((await hasty).allowed, false)
  await held.release()
  assert.equal((await limiter.take('a')).allowed, false, 'no take overtakes the queue')
  clock.advance(2000)
  await turns(12)
  assert.equal((await first).allowed, true)
})

test('the waits behind it still wait for the first', async () => {
  const { clock, limiter } = fleet(ONE)
  const held = await limiter.take('a')
  const order: string[] = []
  const wait = async (name: string, maxWaitMs: number): Promise<void> => {
    const { allowed } = await limiter.wait('a', { maxWait: maxWaitMs })
    order.push(`${name} ${allowed}`)
  }
  const waits: Promise<void>[] = []
  for (const [name, maxWaitMs] of [
    ['first', 60_000],
    ['hasty', 5000],
    ['last', 60_000],
  ] as const) {
    waits.push(wait(name, maxWaitMs))
    await turns()
  }
  const pass = async (ms: number): Promise<void> => {
    for (let passed = 0; passed < ms; passed += 10) {
      clock.advance(10)
      await turns(4)
    }
  }
  await pass(5000)
  assert.deepEqual(order, ['hasty false'])
  await held.release()
  await pass(1010)
  assert.deepEqual(order, ['hasty false', 'first true'])
  limiter.close()
  await assert.rejects(Promise.all(waits), { code: 'CLOSED' })
})

test('a process that stood still for longer than a lease when its time came books anew, as what it had is void', async () => {
  const { clock, limiter } = fleet(tokenBucket({ limit: 100, window: '1s', burst: 50 }))
  await turns()
  await limiter.penalize('a', 60)
  for (const [lateMs, charged] of [
    [90, 1],
    [110, 3],
  ] as const) {
    await limiter.penalize('a', 40)
    const waiting = limiter.wait('a')
    await turns()
    const { retryAfterMs } = await limiter.peek('a')
    clock.advance(retryAfterMs - 10 + lateMs)
    await turns(12)
    assert.equal((await waiting).allowed, true)
    assert.equal(limiter.stats().chargedTokens, charged)
  }
})

test('who gets his place lets the next one ask at once', async () => {
  const { limiter } = fleet(concurrency({ limit: 3, ttl: '1h' }))
  const held = await limiter.take('a', 3)
  const waits = [1, 2, 3].map(() => limiter.wait('a'))
  await turns(12)
  await held.release()
  // The clock stands still.
  for (const waiting of waits) assert.equal((await waiting).allowed, true)
})
