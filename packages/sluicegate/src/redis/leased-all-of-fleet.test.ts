import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { longTest, type SinglePolicySpec } from 'sluicegate-testkit'
import { budgetOf, surelyOver } from 'sluicegate-testkit/history/excess.js'
import { leasedFleet, spentBy } from 'sluicegate-testkit/leases/leased-fleet.js'
import { holdingTokens } from 'sluicegate-testkit/leases/manual-authority.js'
import { ownRedis } from 'sluicegate-testkit/redis/own-redis.js'
import { createLimiter } from '../create-limiter.js'
import { allOf, fixedWindow, type Policy, type SharedLimiter, slidingLog, tokenBucket } from '../index.js'
import { redis as redisStore } from './index.js'

// Several policies, leased apart from a real server. Real time: what is asserted holds however slow the machine is.

const redis = await ownRedis()
after(() => redis.stop())
const { client } = redis

const USER = tokenBucket({ limit: 5, window: '1s', burst: 200, name: 'user' })
const TENANT = slidingLog({ limit: 400, window: '1d', name: 'tenant' })

function limiterOf(policy: Policy): SharedLimiter {
  return createLimiter(policy, { store: redisStore(client), timeout: 10_000, outage: 'closed', lease: 1000 })
}

const FLEETS: readonly (readonly [SinglePolicySpec, SinglePolicySpec])[] = [
  [
    { algorithm: 'token-bucket', limit: 200, windowMs: 1000, burst: 100 },
    { algorithm: 'gcra', limit: 300, windowMs: 1000, burst: 100 },
  ],
  [
    { algorithm: 'gcra', limit: 500, windowMs: 1000, burst: 200 },
    { algorithm: 'sliding-log', limit: 300, windowMs: 2000 },
  ],
]

for (const [spec, also] of FLEETS) {
  longTest(
    `I1: four processes of two users and one tenant go over neither a ${spec.algorithm} of each nor a ${also.algorithm} of all`,
    async (t) => {
      await redis.send('FLUSHALL')
      const { url } = redis.server
      const users = ['a', 'b', 'a', 'b']
      const jobs = users.map((user) => ({ url, spec, also, keys: [user, 'all'] as const, forMs: 1500 }))
      const reports = await Promise.all((await leasedFleet(jobs)).map(({ report }) => report))
      for (const user of ['a', 'b']) {
        const own = spentBy(reports.filter((_, i) => users[i] === user))
        assert.equal(surelyOver(own, budgetOf(spec)), undefined)
        assert.ok(own.length > 0)
      }
      const all = spentBy(reports)
      assert.equal(surelyOver(all, budgetOf(also)), undefined)
      const calls = reports.reduce((sum, report) => sum + (report?.storeCalls ?? 0), 0)
      t.diagnostic(`${all.length} passed, ${calls} calls`)
    },
  )
}

test('admitted and charged tokens are reported in the same unit', async () => {
  using limiter = limiterOf(allOf([USER, TENANT]))
  const passed = await holdingTokens(limiter, ['counted', 'all counted'])
  const { admittedTokens, chargedTokens, leases } = limiter.stats()
  assert.equal(admittedTokens, passed)
  assert.ok(chargedTokens > passed && chargedTokens <= 2 * passed, `${chargedTokens}`)
  assert.equal(leases, 2)
})

test('a policy that is blocked denies all from its next lease on, and is charged with no more than was held', async () => {
  using limiter = limiterOf(allOf([USER, TENANT]))
  using tenants = limiterOf(TENANT)
  await holdingTokens(limiter, ['u', 'blocked'])
  await tenants.block('blocked', '1m')
  let passed = 0
  let last = await limiter.take(['u', 'blocked'])
  for (; last.allowed; last = await limiter.take(['u', 'blocked'])) passed++
  assert.ok(passed <= 50, 'a lease at most')
  assert.ok(last.retryAfterMs > 1000 && last.retryAfterMs <= 60_001, `${last.retryAfterMs}`)
  assert.deepEqual([last.policy, last.parts?.map(({ allowed }) => allowed)], ['tenant', [true, false]])
  assert.equal((await limiter.take(['u', 'another'])).allowed, true)
  await limiter.block(['u', 'blocked'], 0)
  assert.equal((await limiter.take(['u', 'blocked'])).allowed, true)
})

test('of keys that were blocked, punished or reset by this process nothing that was held is spent', async () => {
  using limiter = limiterOf(allOf([USER, TENANT]))
  const keys = ['v', 'all of v']
  await holdingTokens(limiter, keys)
  await limiter.block(keys, '1m')
  assert.equal((await limiter.take(keys)).allowed, false)
  await limiter.block(keys, 0)
  await limiter.penalize(keys, 500)
  assert.equal((await limiter.take(keys)).allowed, false)
  await limiter.reset(keys)
  const { allowed, parts } = await limiter.take(keys, 150)
  assert.deepEqual([allowed, parts?.length], [true, 2])
})

test('tokens that come back let the next pass where it was known to be denied', async () => {
  using limiter = limiterOf(allOf([fixedWindow({ limit: 30, window: '30d', name: 'few' }), TENANT]))
  const keys = ['w', 'all of w']
  let passed = 0
  while ((await limiter.take(keys)).allowed) passed++
  assert.equal(passed, 30)
  assert.ok(!(limiter.take(keys) instanceof Promise), 'it is known')
  await limiter.refund(keys, 2)
  assert.equal((await limiter.take(keys)).allowed, true)
})

test('an update counts what was leased before as spent, of each policy', async () => {
  using limiter = limiterOf(allOf([tokenBucket({ limit: 5, window: '1s', burst: 200, name: 'updated' }), TENANT]))
  const keys = ['x', 'all of x']
  let passed = 0
  for (let next = await limiter.take(keys); next.allowed; next = await limiter.take(keys)) passed++
  limiter.update(allOf([tokenBucket({ limit: 5, window: '1s', burst: 100 }), TENANT]))
  assert.equal((await limiter.take(keys)).allowed, false, 'no fresh burst')
  assert.ok(passed > 100)
})

test('waits are served in order, and no take overtakes them', async () => {
  using limiter = limiterOf(allOf([tokenBucket({ limit: 50, window: '1s', burst: 120, name: 'brisk' }), TENANT]))
  const keys = ['y', 'all of y']
  while ((await limiter.take(keys)).allowed);
  const waited = await limiter.wait(keys, { maxWait: 30_000 })
  assert.equal(waited.allowed, true)
  const { allowed, decision } = await limiter.reserve(keys, 400)
  assert.deepEqual([allowed, decision.retryAfterMs], [false, Number.POSITIVE_INFINITY])
})

test('where one of them cannot be leased each take is one call for all', async () => {
  const slow = tokenBucket({ limit: 1, window: '1m', burst: 5, name: 'slow' })
  using limiter = limiterOf(allOf([slow, TENANT]))
  const passed = []
  for (let i = 0; i < 7; i++) passed.push((await limiter.take(['z', 'all of z'])).allowed)
  assert.deepEqual(passed, [true, true, true, true, true, false, false])
  assert.deepEqual([limiter.stats().storeCalls, limiter.stats().leases], [7, 0])
})

test('after it was closed nothing is taken', async () => {
  const limiter = limiterOf(allOf([USER, TENANT]))
  await holdingTokens(limiter, ['closed', 'all closed'])
  limiter.close()
  assert.throws(() => limiter.take(['closed', 'all closed']), { code: 'CLOSED' })
})
