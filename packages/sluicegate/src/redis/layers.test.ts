import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { IS_LONG_RUN, RedisCluster, RedisProcess } from 'sluicegate-testkit'
import { allow, clientsOfFile, DOCUMENTED_COMMANDS, DOCUMENTED_FOR_OVERRIDES, USER } from 'sluicegate-testkit/redis/own-redis.js'
import { CLUSTER_CLIENTS, clientsForRun, type OpenClient, SERVER_CLIENTS } from 'sluicegate-testkit/redis/redis-clients.js'
import { banSuite } from 'sluicegate-testkit/suites/ban-suite.js'
import { layerSuite, passed } from 'sluicegate-testkit/suites/layer-suite.js'
import { listAndShadowSuite } from 'sluicegate-testkit/suites/list-and-shadow-suite.js'
import { overrideSuite, STALE_MS } from 'sluicegate-testkit/suites/override-suite.js'
import { createLimiter } from '../create-limiter.js'
import { fixedWindow, type Policy } from '../index.js'
import { manualClock } from '../time/clock.js'
import { redis, scriptedStore } from './redis.js'
import { RedisKeys } from './redis-keys.js'
import { RedisOverrides } from './redis-overrides.js'
import { RedisScripts } from './redis-scripts.js'
import { runnerFor } from './runner-for.js'
import { OVERRIDES_SCRIPT } from './scripts.gen.js'

/** Those that most fleets have; the others run the same scripts by the same port. */
const KINDS = clientsForRun(SERVER_CLIENTS.filter(({ name }) => name === 'node-redis' || name === 'ioredis'))

const opened = await clientsOfFile(KINDS)

for (const kind of KINDS) {
  let limiters = 0
  for (const mode of ['exact', 'leased'] as const) {
    for (const suite of [layerSuite, listAndShadowSuite])
      suite({
        name: `Redis, ${mode}, ${kind.name}`,
        make: (policy, options) =>
          createLimiter(policy, {
            store: redis((opened.get(kind.name) as OpenClient).client, { prefix: `${kind.name} ${++limiters}` }),
            ...(policy.algorithm !== 'concurrency' && { mode }),
            outage: 'closed',
            timeout: 60_000,
            ...options,
          }),
      })
  }
}

test('policies of one name are versions of one policy: what a key spent under one counts under the other', async () => {
  const plan = (limit: number): Policy => fixedWindow({ limit, window: '365d', name: 'plan' })
  let limit = 30
  using limiter = createLimiter(plan(5), {
    store: redis((opened.get('node-redis') as OpenClient).client),
    mode: 'exact',
    policyFor: () => plan(limit),
  })
  assert.equal(await passed(limiter, 'k', 40), 30)
  limit = 50
  assert.equal(await passed(limiter, 'k', 40), 20)
  limit = 40
  assert.equal(await passed(limiter, 'k', 5), 0)
})

describe('ban after', async () => {
  const KINDS = clientsForRun(SERVER_CLIENTS.filter(({ name }) => name === 'node-redis' || name === 'ioredis'))

  const opened = await clientsOfFile(KINDS)

  for (const { name } of KINDS) {
    let pairs = 0
    banSuite({
      name: `Redis, ${name}`,
      make: (policy, banAfter, more = {}) => {
        const clock = manualClock(1_789_000_000_000)
        const keys = new RedisKeys(`${name} ${++pairs}`)
        const runner = runnerFor(opened.get(name)?.client)
        const options = { mode: 'exact', banAfter, outage: 'closed', ...more } as const
        const limiter = () => createLimiter(policy, { store: scriptedStore(new RedisScripts(runner, keys)), ...options, clock })
        return { one: limiter(), other: limiter(), clock }
      },
    })
  }
})

describe('overrides', () => {
  const OWN = fixedWindow({ limit: 3, window: '365d', name: 'own' })
  const PRO = fixedWindow({ limit: 5, window: '365d', name: 'pro' })

  const PLAIN = SERVER_CLIENTS.filter(({ name }) => name === 'node-redis' || name === 'ioredis')

  let server: RedisProcess
  let cluster: RedisCluster
  const opened = new Map<string, OpenClient>()
  before(async () => {
    server = await RedisProcess.start()
    cluster = await RedisCluster.start({ replicas: 0 })
    for (const kind of PLAIN) opened.set(kind.name, await kind.open([server]))
  })
  after(async () => {
    for (const open of opened.values()) await open[Symbol.asyncDispose]()
    await Promise.all([server.stop(), cluster.stop()])
  })

  for (const [i, kind] of PLAIN.entries()) {
    let pairs = 0
    for (const [j, mode] of (['exact', 'leased'] as const).entries()) {
      if (i + j > 0 && !IS_LONG_RUN) continue
      overrideSuite({
        name: `Redis, ${mode}, ${kind.name}`,
        isLeased: mode === 'leased',
        make: (policy, more = {}) => {
          const clock = manualClock(1_789_000_000_000)
          const keys = new RedisKeys(`${kind.name} ${mode} ${++pairs}`)
          const options = { mode, overrides: { maxAge: STALE_MS }, ...more, outage: 'closed' } as const
          const limiter = () => {
            const runner = runnerFor(opened.get(kind.name)?.client)
            const overridesOf = () => new RedisOverrides(runner, keys, policy.name)
            const store = scriptedStore(new RedisScripts(runner, keys), () => ({ overridesOf }))
            return createLimiter(policy, { store, ...options, clock }) as never
          }
          return { one: limiter(), other: limiter(), clock }
        },
      })
    }
  }

  for (const kind of [...clientsForRun(SERVER_CLIENTS), ...clientsForRun(CLUSTER_CLIENTS)]) {
    test(`overrides are kept by ${kind.name}`, async () => {
      await using open = await kind.open(CLUSTER_CLIENTS.includes(kind) ? cluster.roots : [server])
      const options = { store: redis(open.client, { prefix: kind.name }), mode: 'exact', timeout: 60_000, overrides: true } as const
      using one = createLimiter(OWN, options)
      await one.overrides.set('acme', PRO)
      assert.equal((await one.take('acme')).limit, 5)
      using other = createLimiter(OWN, options)
      assert.deepEqual([(await other.take('acme')).limit, (await other.take('else')).limit], [5, 3])
      assert.deepEqual([await other.overrides.get('acme'), await one.overrides.delete('acme')], [PRO, true])
      assert.deepEqual(await one.overrides.list(), new Map())
    })
  }

  test('the commands that are documented for overrides are those that they need', async () => {
    const called = [...OVERRIDES_SCRIPT.source.matchAll(/redis\.call\('([A-Z]+)'/g)].map(([, command]) => (command as string).toLowerCase())
    assert.deepEqual(new Set(called.filter((command) => !DOCUMENTED_COMMANDS.includes(command))), new Set(DOCUMENTED_FOR_OVERRIDES))
    await allow([server], [...DOCUMENTED_COMMANDS, ...DOCUMENTED_FOR_OVERRIDES])
    const [kind] = SERVER_CLIENTS
    await using open = await (kind as (typeof SERVER_CLIENTS)[0]).open([server], USER)
    using limiter = createLimiter(OWN, { store: redis(open.client), mode: 'exact', timeout: 60_000, overrides: true })
    await limiter.overrides.set('acme', PRO)
    assert.equal((await limiter.take('acme')).limit, 5)
    assert.equal(await limiter.overrides.delete('acme'), true)
  })

  test('a hash that was lost, and made anew by as many changes, is not taken for the one before', async () => {
    await using open = await (SERVER_CLIENTS[0] as (typeof SERVER_CLIENTS)[0]).open([server])
    const clock = manualClock(1_789_000_000_000)
    const keys = new RedisKeys('lost')
    const runner = runnerFor(open.client)
    const make = () => {
      const kept = new RedisOverrides(runner, keys, 'own')
      const store = scriptedStore(new RedisScripts(runner, keys), () => ({ overridesOf: () => kept }))
      return createLimiter(OWN, { store, mode: 'exact', overrides: true, clock })
    }
    using one = make()
    await one.overrides.set('acme', PRO)
    assert.equal((await one.take('acme')).policy, 'pro')
    await server.ask('DEL', 'lost:overrides:own')
    using other = make()
    await other.overrides.set('else', PRO)
    clock.advance(1_000)
    assert.deepEqual([(await one.take('acme')).policy, (await one.take('else')).policy], ['own', 'pro'])
  })
})
