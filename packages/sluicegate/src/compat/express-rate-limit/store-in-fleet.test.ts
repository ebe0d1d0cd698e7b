import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { createClient } from '@redis/client'
import { freePorts, RedisProcess } from 'sluicegate-testkit'
import { createLimiter } from '../../create-limiter.js'
import { fixedWindow, type Policy, type SharedLimiter } from '../../index.js'
import { redis } from '../../redis/index.js'
import type { SharedOptions } from '../../shared/shared-options.js'
import { SluicegateStore } from './sluicegate-store.js'

const DAY = 86_400_000

let server: RedisProcess
let client: ReturnType<typeof createClient>
before(async () => {
  const [port = 0] = await freePorts(1)
  server = await RedisProcess.start({ port })
  client = createClient({ url: server.url })
  client.on('error', () => undefined)
  await client.connect()
})
after(async () => {
  client.destroy()
  await server.stop()
})

const inFleet =
  (prefix: string, options: Partial<SharedOptions> = {}) =>
  (policy: Policy): SharedLimiter =>
    createLimiter(policy, { store: redis(client as never, { prefix }), timeout: 30_000, ...options })

// So long that no lease comes too late on a busy machine: what it held would be lost to the count.
for (const [mode, options] of [
  ['exact', { mode: 'exact' }],
  ['leased', { mode: 'leased', lease: 10_000 }],
] as const) {
  test(`stores of several processes count together to the last hit, ${mode}`, async (t) => {
    const stores = [1, 2, 3].map(() => {
      const store = new SluicegateStore({ create: inFleet(`count-${mode}`, options) })
      store.init({ windowMs: DAY, limit: 100 })
      return store
    })
    t.after(() => {
      for (const store of stores) store.shutdown()
    })
    assert.deepEqual(
      stores.map(({ localKeys, prefix }) => ({ localKeys, prefix })),
      Array(3).fill({ localKeys: false, prefix: 'express-rate-limit-1d:rl:' }),
    )
    const counts = await Promise.all(Array.from({ length: 300 }, async (_, i) => stores[i % 3]?.increment('ada')))
    const hits = counts.map((count) => count?.totalHits).sort((a = 0, b = 0) => a - b)
    assert.deepEqual(
      hits,
      Array.from({ length: 300 }, (_, i) => i + 1),
    )
    await stores[0]?.decrement('ada')
    assert.equal((await stores[1]?.get('ada'))?.totalHits, 299)
    await stores[2]?.resetKey('ada')
    assert.equal(await stores[0]?.get('ada'), undefined)
  })

  test(`a deciding shared limiter allows what its policy allows, ${mode}`, async (t) => {
    const limiters = [1, 2].map(() => inFleet(`decide-${mode}`, options)(fixedWindow({ limit: 40, window: '1d', name: 'day' })))
    t.after(() => {
      for (const limiter of limiters) limiter.close()
    })
    const stores = limiters.map((limiter) => {
      const store = new SluicegateStore({ limiter })
      store.init({ windowMs: DAY, limit: 40 })
      return store
    })
    const counts = await Promise.all(Array.from({ length: 200 }, async (_, i) => stores[i % 2]?.increment('ada')))
    const within = counts.filter((count) => (count?.totalHits ?? 0) <= 40).length
    // What one process holds and does not spend, the other does not get at once.
    if (mode === 'exact') assert.equal(within, 40)
    assert.ok(within <= 40 && within > 0, `${within} passed`)
  })
}

test('without the server hits are an error, which express-rate-limit passes or not by its own option', async (t) => {
  const store = new SluicegateStore({ create: inFleet('out', { timeout: 50 }) })
  store.init({ windowMs: DAY, limit: 100 })
  t.after(() => store.shutdown())
  await server.stop()
  await assert.rejects(async () => store.increment('ada'), { name: 'StoreError', code: 'OUTAGE' })
  await assert.rejects(async () => store.get('ada'), { name: 'StoreError', code: 'OUTAGE' })
})
