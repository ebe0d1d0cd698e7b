import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createLimiter } from '../create-limiter.js'
import { fixedWindow, manualClock } from '../index.js'
import { memoryStore } from '../store-testing/memory-store.js'
import { casStore } from './cas.js'
import type { CasStore } from './cas-store.js'

test('a process that paused after lost swaps goes on from the state of that moment, however busy its rival is', async () => {
  const clock = manualClock(1_700_000_000_000)
  const memory = memoryStore({ clock })
  const policy = fixedWindow({ limit: 1000, window: '1d', name: 'day' })
  const rival = createLimiter(policy, { store: casStore(memory), clock, mode: 'exact' })
  let [swaps, spoiled] = [0, 2]
  const store: CasStore = {
    name: 'contended',
    read: (key) => memory.read(key),
    swap: async (swap) => {
      swaps++
      if (spoiled-- > 0) await rival.take('k')
      return memory.swap(swap)
    },
  }
  const limiter = createLimiter(policy, { store: casStore(store), clock, mode: 'exact', outage: 'closed', timeout: 10_000 })
  let decided = false
  const take = Promise.resolve(limiter.take('k')).finally(() => {
    decided = true
  })
  for (let ms = 0; ms < 200 && !decided; ms++) {
    for (let turn = 0; turn < 5; turn++) await new Promise(setImmediate)
    // Its rival changes the key again and again while it pauses.
    if (spoiled <= 0 && swaps === 2) await rival.take('k')
    clock.advance(1)
  }
  assert.equal((await take).source, 'store')
  assert.equal(swaps, 3, 'the first after the pause is made')
  for (const each of [limiter, rival]) each.close()
})
