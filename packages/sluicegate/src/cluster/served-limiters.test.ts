import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fleet, turns } from 'sluicegate-testkit/cluster/channel-pair.js'
import { createLimiter, restoreLimiter } from '../create-limiter.js'
import { manualClock, slidingLog, tokenBucket } from '../index.js'
import { serveLimiter } from './serve-limiter.js'

const POLICY = tokenBucket({ limit: 100, window: '1s', burst: 100, name: 'p' })

test('a restored limiter is served as it is: leased, with what was spent, and open after the end', async () => {
  const clock = manualClock(1_789_000_000_000)
  const before = createLimiter(POLICY, { clock })
  before.take('a', 60)
  const limiter = restoreLimiter(before.snapshot(), { clock })
  const made = fleet(POLICY, { served: limiter })
  await turns()
  const taken = await Promise.all(Array.from({ length: 60 }, () => made.limiter.take('a')))
  assert.ok(taken.some(({ source }) => source === 'lease'))
  assert.ok(taken.filter(({ allowed }) => allowed).length <= 40)
  made.served.close()
  assert.equal(limiter.peek('b').remaining, 100)
})

test('a limiter with layers is served by its verbs, one request each; so is a log, whose window stays as it is', async () => {
  const layered = createLimiter(POLICY, { clock: manualClock(), deny: ['banned'] })
  const log = slidingLog({ limit: 100, window: '1m', name: 'log' })
  for (const [policy, limiter] of [
    [POLICY, layered],
    [log, createLimiter(log, { clock: manualClock() })],
  ] as const) {
    const made = fleet(policy, { served: limiter })
    await turns()
    const reservation = await made.limiter.reserve('a', 30)
    assert.equal(reservation.allowed, true)
    await reservation.settle(10)
    assert.deepEqual([(await made.limiter.take('a')).source, limiter.peek('a').remaining], ['store', 89])
    assert.equal(limiter.policy.windowMs, policy.windowMs)
    made.limiter.close()
  }
  const made = fleet(POLICY, { served: layered })
  assert.equal((await made.limiter.take('banned')).allowed, false)
})

test('the options of a table are refused beside a limiter that has its own', () => {
  const limiter = createLimiter(POLICY)
  for (const options of [{ maxKeys: 5 }, { onFull: 'deny' }] as const) {
    assert.throws(() => serveLimiter(limiter, options), { code: 'OPTION_INVALID', message: /createLimiter/ })
    serveLimiter(limiter, { ...options, overrides: true }).close()
  }
})
