import assert from 'node:assert/strict'
import { test } from 'node:test'
import { until } from 'sluicegate-testkit'
import { createLimiter } from '../create-limiter.js'
import { fixedWindow } from '../index.js'
import { casStore } from '../store/index.js'
import { TimedStore } from '../store/timed-store.js'
import { memoryStore } from '../store-testing/index.js'
import { preciseClock } from '../time/clock.js'
import { region } from './index.js'
import { StoredPool } from './stored-pool.js'

const HOME = { isScarce: false, least: 1, deniedUs: 0, blockedUs: 0, rest: 0, fullUs: 0 }
const DRAW = { want: 1, least: 1, demand: 1, leadUs: 250_000, foreseenUs: 0 }

test('two processes that draw at once from a store that compares and swaps draw each token once; a look takes none', async () => {
  const calls = new TimedStore(memoryStore(), preciseClock(), 10_000)
  const [a, b] = [1, 2].map(() => new StoredPool(calls, (key) => `pool:${key}`)) as [StoredPool, StoredPool]
  const { nowUs, claimedUs } = await a.draw('k', DRAW)
  const claims = await Promise.all([a, b].map((pool) => pool.claim('k', { claimedUs, claimUs: 1_000_000 })))
  assert.equal(claims.filter((at) => at > 0).length, 1)
  await b.refill('k', { ...HOME, askedUs: nowUs, endsUs: 4_000_000, agoUs: 0, tokens: 50, grantId: 7 })
  const { demand: _, ...look } = DRAW
  assert.deepEqual([(await a.draw('k', look)).tokens, (await a.draw('k', look)).left], [1, 50])
  const drawn = await Promise.all(Array.from({ length: 80 }, (_, i) => (i % 2 === 0 ? a : b).draw('k', DRAW)))
  assert.equal(drawn.filter(({ tokens }) => tokens === 1).length, 50)
})

test('any store that compares and swaps is the store of a region, or its home', async () => {
  const [here, there] = [memoryStore(), memoryStore()]
  const policy = fixedWindow({ limit: 100, window: '1h', name: 'stored' })
  const make = () => createLimiter(policy, { store: region({ name: 'west', local: casStore(here), home: casStore(there), share: 0.5 }) })
  const limiters = [make(), make()]
  let passed = 0
  for (let round = 0; round < 15; round++) {
    const decisions = await Promise.all(limiters.flatMap((limiter) => Array.from({ length: 5 }, () => limiter.take('k'))))
    passed += decisions.filter(({ allowed }) => allowed).length
  }
  assert.equal(limiters[0]?.stats().region?.mode, 'tokens')
  assert.ok(passed >= 50 && passed <= 100, `${passed} passed`)
  await until('one of them has renewed', () => limiters.some((limiter) => (limiter.stats().region?.renewals ?? 0) > 0))
  for (const limiter of limiters) limiter.close()
})
