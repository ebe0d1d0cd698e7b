import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createLimiter, fixedWindow, type Limiter, manualClock, type Policy } from '../../index.js'
import { SluicegateStore, type SluicegateStoreOptions } from './sluicegate-store.js'

const clock = manualClock(600_000)
const here = (policy: Policy): Limiter => createLimiter(policy, { clock })

/** One that express-rate-limit has told its options. */
function ready(options: SluicegateStoreOptions): SluicegateStore {
  const store = new SluicegateStore(options)
  store.init({ windowMs: 60_000, limit: 5 })
  return store
}

const hitsOf = async (store: SluicegateStore, key: string): Promise<number> => (await store.increment(key)).totalHits

test('any key that express-rate-limit may have is counted: empty, long, none at all', async () => {
  const store = ready({ create: here })
  for (const key of ['', 'x'.repeat(5_000), undefined as never, 7 as never]) assert.equal(await hitsOf(store, key), 1)
  assert.equal(await hitsOf(store, `${'x'.repeat(5_000)}y`), 1)
  assert.equal(await hitsOf(store, 'x'.repeat(5_000)), 2)
  const limiter = here(fixedWindow({ limit: 5, window: '1m' }))
  for (const key of ['', '\0', 'ada', undefined as never]) assert.equal(await hitsOf(ready({ limiter }), key), 1)
})

test('what is no text is refused as a key, which all such requests would share', () => {
  for (const store of [ready({}), ready({ create: here })]) {
    for (const key of [{ id: 1 }, ['ada'], () => 'ada', Symbol('ada')]) {
      assert.throws(() => store.increment(key as never), { code: 'KEY_INVALID', option: 'key' })
    }
  }
})

test('in a memory of its own no two keys are one, whatever they begin with', async () => {
  const store = ready({})
  for (const key of ['', '\0', '\0\0', '\0a', 'a', 'rl:', 'rl:a', 'x'.repeat(2_000)]) assert.equal(await hitsOf(store, key), 1)
  assert.equal(await hitsOf(store, ''), 2)
  assert.equal(await hitsOf(store, undefined as never), 1)
  assert.equal(await hitsOf(store, 7 as never), 1)
})
