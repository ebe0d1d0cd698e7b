import assert from 'node:assert/strict'
import { test } from 'node:test'
import { channelPair } from 'sluicegate-testkit/cluster/channel-pair.js'
import { primary, serveLimiter } from '../../cluster/index.js'
import { createLimiter } from '../../create-limiter.js'
import { countingPolicy, SluicegateStore } from './index.js'

const TEN_MINUTES = 600_000

test('a prefix of its own is in the name of what a store counts by', () => {
  assert.equal(countingPolicy(TEN_MINUTES).name, 'express-rate-limit-10m')
  assert.equal(countingPolicy(TEN_MINUTES, 'rl:').name, 'express-rate-limit-10m')
  assert.equal(countingPolicy(TEN_MINUTES, 'login:').name, 'express-rate-limit-10m-login:')
  for (const prefix of ['grün', 'x'.repeat(120)]) {
    assert.throws(() => countingPolicy(TEN_MINUTES, prefix), { code: 'NAME_INVALID', option: 'prefix' })
  }
})

test('stores of one window and two prefixes count apart on the channel of a cluster', async (t) => {
  const { worker, parent } = channelPair()
  const stores = ['a:', 'b:'].map((prefix) => {
    const served = serveLimiter(countingPolicy(TEN_MINUTES, prefix))
    served.serve(worker)
    const store = new SluicegateStore({
      prefix,
      create: (policy) => createLimiter(policy, { store: primary({ process: parent }), timeout: 30_000 }),
    })
    store.init({ windowMs: TEN_MINUTES, limit: 5 })
    t.after(() => {
      store.shutdown()
      served.close()
    })
    return store
  })
  for (const hits of [1, 2]) for (const store of stores) assert.equal((await store.increment('ada')).totalHits, hits)
})

test('a store that has its limiter to itself takes any prefix', async () => {
  const store = new SluicegateStore({ prefix: 'grün' })
  store.init({ windowMs: TEN_MINUTES, limit: 5 })
  assert.equal((await store.increment('ada')).totalHits, 1)
})
