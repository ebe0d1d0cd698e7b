import assert from 'node:assert/strict'
import { test } from 'node:test'
import { FleetLoad, RedisProcess, until } from 'sluicegate-testkit'
import { allowedOver } from './failover.js'
import { boundOf, MIXES } from './redis-failovers.js'
import { stateOf, watchdog } from './watched.js'

test('a wait that ends is what was waited for', async () => {
  const watched = watchdog(() => assert.fail('the state was not asked for'))
  assert.equal(await watched('it ends', Promise.resolve(7)), 7)
})

test('one that fails, and one that does not end, fail with their name and with the state of everything', async () => {
  const watched = watchdog(async () => 'all is quiet', 1)
  await assert.rejects(watched('it rains', new Promise(() => undefined)), { message: 'it rains: not so after 1 ms\nall is quiet' })
  await assert.rejects(watched('it snows', Promise.reject(new Error('too warm'))), { message: 'it snows: too warm\nall is quiet' })
})

test('the state says which server answers, in what role, which caller has waited since when, and what the limiter counted', async () => {
  await using server = await RedisProcess.start()
  await using gone = await RedisProcess.start()
  await gone.kill()
  // One caller is answered once, and then never again.
  let asked = 0
  const take = () => (asked++ === 0 ? ({ source: 'store' } as never) : new Promise<never>(() => undefined))
  const load = new FleetLoad({ take }, { keys: ['user:7'], callers: 1 })
  await until('the caller waits', () => asked === 2)
  const state = await stateOf([server, gone], [{ name: 'who waits', load, limiter: { stats: () => ({ storeCalls: 1 }) as never } }])
  assert.match(state, new RegExp(`^server ${server.port}: \\n  role:master`, 'm'))
  assert.match(state, new RegExp(`^server ${gone.port}: no answer`, 'm'))
  assert.match(state, /^who waits: 1 takes, 0 errors\n {2}last answer: user:7, store, \d+ ms ago\n {2}waiting: user:7 asked \d+ ms ago/m)
  assert.match(state, /counters: \{"storeCalls":1\}/)
})

test('versions pass the largest burst and the highest rate together, wherever each of them comes from', () => {
  const versions = [
    { limit: 200, burst: 210 },
    { limit: 180, burst: 200 },
    { limit: 220, burst: 100 },
  ]
  assert.deepEqual(boundOf(versions), { limit: 220, windowMs: 5000, burst: 210 })
})

test('each failover may add one burst and what flows in during the replication lag and the node timeout', () => {
  const bound = { limit: 200, windowMs: 5000, burst: 210 }
  // 40 a second: 44 in 1.1 s, and 8 in two time-outs of 100 ms.
  assert.equal(allowedOver(bound, 1), 210 + 44 + 8)
  assert.equal(allowedOver(bound, 3), 3 * (210 + 44) + 8)
})

test('there are mixes of bursts, limits, modes and horizons, and one that changes while a primary is gone', () => {
  const all = MIXES.flatMap(({ versions }) => versions)
  assert.deepEqual([...new Set(all.map(({ burst }) => burst))].sort(), [200, 210])
  assert.deepEqual([...new Set(all.map(({ limit }) => limit))].sort(), [180, 200])
  assert.ok(all.some(({ options }) => options?.mode === 'exact') && all.some(({ options }) => options?.lease !== undefined))
  assert.equal(MIXES.filter(({ isRolling }) => isRolling).length, 1)
})
