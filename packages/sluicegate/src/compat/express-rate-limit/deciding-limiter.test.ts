import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Request } from 'express'
import { clock, here, MINUTE, site, statuses, usedBy } from 'sluicegate-testkit/adapters/rate-limit-site.js'
import { turnsUntil } from 'sluicegate-testkit/turns.js'
import { type Decision, fixedWindow, type Limiter, type Policy } from '../../index.js'
import { MemoryStore, type RateLimitInfo, type RateLimitOptions, rateLimit } from './index.js'

test('a request that passes without a decision has no info, or what this process knows', async (t) => {
  // Of a store that is away, whose answer is a share of 5 of the 50 there are.
  const spent = { spent: 1, limit: 50, remaining: 4, retryAfterMs: 0, resetAfterMs: 60_000 }
  const take = (): Decision => ({ allowed: true, policy: 'share', source: 'outage', ...spent })
  const create = (policy: Policy): Limiter => ({ ...here(policy), policy, take, peek: take }) as never
  const found = async (options: RateLimitOptions): Promise<unknown> => {
    const seen: unknown[] = []
    const skip = (request: Request): boolean => {
      request.res?.once('finish', () => seen.push((request as never as { rateLimit?: RateLimitInfo }).rateLimit))
      return false
    }
    const { headers } = await (await site(t, { limit: 50, create, skip, ...options })).ask()
    await turnsUntil(() => seen.length === 1)
    const [info] = seen as RateLimitInfo[]
    return info === undefined ? headers['x-ratelimit-limit'] : [info.used, info.remaining]
  }
  assert.equal(await found({ passOnStoreError: true }), undefined)
  assert.deepEqual(await found({}), [1, 4])
})

test('a limit of 0 denies every request, and the next window too', async (t) => {
  const app = await site(t, { limit: 0 })
  assert.deepEqual(await statuses(app, '/', '/'), [429, 429])
  clock.set(Math.ceil((clock.nowMs() + 1) / MINUTE) * MINUTE)
  const { status, headers } = await app.ask()
  assert.deepEqual([status, headers['x-ratelimit-limit'], headers['retry-after']], [429, '0', '60'])
  assert.equal(await usedBy(app), 1)
  await app.limit.resetKey('127.0.0.1')
  assert.deepEqual(await statuses(app, '/'), [429])
})

test('a store of this library counts for the middleware, and for nothing else', async (t) => {
  const store = new MemoryStore({ prefix: 'a:', create: here })
  const app = await site(t, { create: undefined, store } as never)
  assert.deepEqual(await statuses(app, '/', '/', '/'), [200, 200, 429])
  assert.equal((await store.get('127.0.0.1'))?.totalHits, 3)
  await store.resetKey('127.0.0.1')
  assert.deepEqual(await statuses(app, '/', '/', '/'), [200, 200, 429])
  assert.throws(() => rateLimit({ store }), { option: 'store' })
  assert.throws(() => rateLimit({ store: new MemoryStore(), create: here }), { option: 'create' })
  assert.throws(() => rateLimit({ store: new MemoryStore({ limiter: here(fixedWindow({ limit: 2, window: '1m' })) }) }), {
    option: 'store',
  })
  const own = new MemoryStore()
  const fresh = await site(t, { create: undefined, store: own } as never)
  assert.deepEqual(await statuses(fresh, '/', '/', '/'), [200, 200, 429])
  await own.resetAll()
  assert.deepEqual(await statuses(fresh, '/', '/', '/'), [200, 200, 429])
})
