import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { holdingTokens } from 'sluicegate-testkit/leases/manual-authority.js'
import { ownRedis } from 'sluicegate-testkit/redis/own-redis.js'
import { createLimiter } from '../create-limiter.js'
import { fixedWindow, type Policy, type SharedLimiter, slidingLog, tokenBucket } from '../index.js'
import { redis as redisStore } from './index.js'

// What the other verbs do to leases that are held in this process; what they do to those of others: leased-elsewhere.test.ts.

const redis = await ownRedis()
after(() => redis.stop())
const { client } = redis

function limiterOf(policy: Policy): SharedLimiter {
  return createLimiter(policy, { store: redisStore(client), timeout: 10_000, outage: 'closed', lease: 1000 })
}

const POLICIES = [
  tokenBucket({ limit: 5, window: '1s', burst: 200 }),
  fixedWindow({ limit: 200, window: '30d' }),
  slidingLog({ limit: 200, window: '1d' }),
]

for (const policy of POLICIES) {
  test(`${policy.algorithm}: a key that is blocked lets nothing pass here, though tokens were held`, async () => {
    using limiter = limiterOf(policy)
    await holdingTokens(limiter, 'blocked')
    await limiter.block('blocked', '1m')
    const { allowed, retryAfterMs } = await limiter.take('blocked')
    assert.equal(allowed, false)
    assert.ok(retryAfterMs > 1000 && retryAfterMs <= 60_001, `${retryAfterMs}`)
    const again = limiter.take('blocked')
    assert.ok(!(again instanceof Promise), 'which is known from then on')
    await limiter.block('blocked', 0)
    assert.equal((await limiter.take('blocked')).allowed, true)
  })

  test(`${policy.algorithm}: after a penalty nothing that was held is spent, and after a reset all is new`, async () => {
    using limiter = limiterOf(policy)
    await holdingTokens(limiter, 'punished')
    await limiter.penalize('punished', 400)
    assert.equal((await limiter.take('punished')).allowed, false)
    await limiter.reset('punished')
    const decision = await limiter.take('punished', 150)
    assert.equal(decision.allowed, true)
  })

  test(`${policy.algorithm}: a refund lets the next pass where it was known to be denied, and loses no token in hand`, async () => {
    using limiter = limiterOf(policy)
    let passed = 0
    let decision = await limiter.take('refunded')
    for (; decision.allowed; decision = await limiter.take('refunded')) passed++
    assert.ok(!(limiter.take('refunded') instanceof Promise), 'it is known to be denied')
    await limiter.refund('refunded', 20)
    assert.equal((await limiter.take('refunded')).allowed, true)
    for (let i = 0; i < 5; i++) {
      assert.equal((await limiter.take('refunded')).allowed, true, `${i}: 20 came back`)
      await limiter.refund('refunded', 1)
    }
    assert.ok(passed > 150)
  })
}

test('an update counts what was leased before as spent, and voids what is held', async () => {
  using limiter = limiterOf(tokenBucket({ limit: 5, window: '1s', burst: 200, name: 'updated' }))
  await holdingTokens(limiter, 'k')
  let passed = 0
  for (let next = await limiter.take('k'); next.allowed; next = await limiter.take('k')) passed++
  limiter.update(tokenBucket({ limit: 5, window: '1s', burst: 100 }))
  const { allowed, remaining } = await limiter.take('k')
  assert.deepEqual([allowed, remaining], [false, 0], 'no fresh burst')
  assert.ok(passed > 100)
})
