import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createLimiter } from '../create-limiter.js'
import { fixedWindow, manualClock } from '../index.js'
import { memoryStore } from '../store-testing/memory-store.js'
import { casStoreOf } from './cas.js'
import type { CasStore } from './cas-store.js'

const KEYS = 200
const POLICY = fixedWindow({ limit: 2, window: '1d', name: 'day' })
const OPTIONS = { mode: 'exact', outage: 'closed' } as const

function counting(store: ReturnType<typeof memoryStore>): CasStore & { reads: number; swaps: number } {
  const counted = { name: store.name, reads: 0, swaps: 0 }
  return Object.assign(counted, {
    read: (key: string) => {
      counted.reads++
      return store.read(key)
    },
    swap: (swap: Parameters<CasStore['swap']>[0]) => {
      counted.swaps++
      return store.swap(swap)
    },
  })
}

test('where most keys are new to the store, one more is written without a look; where they are not, it is read first', async () => {
  const clock = manualClock(1_700_000_000_000)
  const store = memoryStore({ clock })
  const [first, second] = [counting(store), counting(store)]
  const limiters = [first, second].map((each) =>
    createLimiter(POLICY, { store: casStoreOf(each, {}, Number.POSITIVE_INFINITY), clock, ...OPTIONS }),
  )
  const passed: number[] = []
  for (const limiter of limiters) {
    let allowed = 0
    for (let i = 0; i < KEYS; i++) if ((await limiter.take(`key ${i}`)).allowed) allowed++
    passed.push(allowed)
  }
  assert.deepEqual(passed, [KEYS, KEYS])
  assert.ok(first.reads <= 20 && first.swaps === KEYS, `${first.reads} reads, ${first.swaps} swaps`)
  assert.deepEqual([second.reads, second.swaps], [KEYS, KEYS])
  // The first takes these keys for new; what they owe counts all the same.
  for (let i = KEYS; i < 2 * KEYS; i++) for (const cost of [1, 1]) await limiters[1]?.take(`key ${i}`, cost)
  for (let i = KEYS; i < 2 * KEYS; i++) assert.equal((await limiters[0]?.take(`key ${i}`))?.allowed, false)
  assert.equal(first.swaps < KEYS + 20, true, 'it has noticed that the store knows them')
  for (const limiter of limiters) limiter.close()
})
