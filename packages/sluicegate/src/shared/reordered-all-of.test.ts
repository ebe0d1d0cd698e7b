import assert from 'node:assert/strict'
import { test } from 'node:test'
import { allOf, createLimiter, fixedWindow, manualClock, type Policy, tokenBucket } from '../index.js'
import { casStore } from '../store/cas.js'
import { memoryStore } from '../store-testing/memory-store.js'

const SMALL = tokenBucket({ limit: 50, window: '1d', name: 'small' })
const LARGE = tokenBucket({ limit: 1000, window: '1d', name: 'large' })
const WINDOW = fixedWindow({ limit: 70, window: '1d', name: 'window' })

const clock = manualClock(1_760_000_000_000)
const MAKERS = {
  memory: (policy: Policy) => createLimiter(policy, { clock }),
  'a store': (policy: Policy) => createLimiter(policy, { store: casStore(memoryStore({ clock })), clock, mode: 'exact' }),
  'leases of a store': (policy: Policy) => createLimiter(policy, { store: casStore(memoryStore({ clock })), clock, mode: 'leased' }),
}

for (const [where, make] of Object.entries(MAKERS)) {
  test(`in ${where} policies of allOf in another order keep what was spent by name, and what is cancelled comes back there`, async () => {
    const limiter = make(allOf([SMALL, LARGE, WINDOW], { name: 'all' }))
    const left = async (key: string | string[]) =>
      Object.fromEntries(((await limiter.peek(key, 1)).parts ?? []).map(({ policy, remaining }) => [policy, remaining]))
    await limiter.take(['s', 'l', 'w'], 30)
    const booked = await limiter.reserve(['s', 'l', 'w'], 10)
    limiter.update(allOf([WINDOW, SMALL, LARGE], { name: 'all' }))
    assert.deepEqual(await left(['w', 's', 'l']), { window: 30, small: 10, large: 960 })
    assert.equal((await limiter.take(['w', 's', 'l'], 11)).policy, 'small')
    await booked.cancel()
    if (where === 'memory') assert.deepEqual(await left(['w', 's', 'l']), { window: 40, small: 20, large: 970 })
    limiter.close()
  })
}
