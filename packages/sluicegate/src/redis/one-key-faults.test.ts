import assert from 'node:assert/strict'
import { test } from 'node:test'
import { everyNth, longTest, RedisCluster } from 'sluicegate-testkit'
import { serverOfFile } from 'sluicegate-testkit/redis/own-redis.js'
import { CLUSTER_CLIENTS, clientsForRun, SERVER_CLIENTS } from 'sluicegate-testkit/redis/redis-clients.js'
import { createLimiter } from '../create-limiter.js'
import { PolicyError } from '../errors.js'
import type { Policy } from '../policy/policy.js'
import { concurrency, fixedWindow, slidingLog, slidingWindow, tokenBucket } from '../policy/single-policy.js'
import type { OutageMode } from '../shared/outage/local-share.js'
import { redis } from './redis.js'
import type { RedisClient } from './runner-for.js'

// What is wrong with one key is no outage of the others.

const RATE = tokenBucket({ limit: 100, window: '1d', name: 'p' })
const POLICIES: readonly Policy[] = [
  RATE,
  fixedWindow({ limit: 100, window: '1d', name: 'p' }),
  slidingWindow({ limit: 100, window: '1d', name: 'p' }),
  slidingLog({ limit: 100, window: '1d', name: 'p' }),
  concurrency({ limit: 100, ttl: '1d', name: 'p' }),
]
const KINDS = clientsForRun(SERVER_CLIENTS.filter(({ name, library }) => name === library))
const MODES = ['exact', 'leased'] as const
const NO_HASTE = { timeout: 60_000 }
const MINE = new TypeError('mine')

const server = await serverOfFile()

/** Without a tag for some keys, as a caller's function may be. */
function tagOf(key: string): string {
  if (key === 'bad') throw MINE
  return key
}

function modesOf({ algorithm }: Policy): readonly (typeof MODES)[number][] {
  return algorithm === 'concurrency' ? ['exact'] : MODES
}

const INVALID = (error: unknown): boolean =>
  error instanceof PolicyError && error.code === 'OPTION_INVALID' && error.option === 'hashTag' && error.cause === MINE

async function throwsInTag(client: RedisClient, mode: (typeof MODES)[number]): Promise<void> {
  const limiter = createLimiter(RATE, {
    store: redis(client, { prefix: `tag ${mode}`, hashTag: tagOf }),
    mode,
    outage: 'open',
    ...NO_HASTE,
  })
  const verbs = [
    async () => limiter.take('bad'),
    async () => limiter.peek('bad'),
    () => limiter.wait('bad'),
    () => limiter.reserve('bad', 1),
    () => limiter.refund('bad', 1),
    () => limiter.penalize('bad', 1),
    () => limiter.block('bad', 5),
    () => limiter.reset('bad'),
  ]
  for (const verb of verbs) for (let i = 0; i < 4; i++) await assert.rejects(verb(), INVALID)
  const { storeCalls, storeFailures, outageDecisions, outages } = limiter.stats()
  assert.deepEqual([storeCalls, storeFailures, outageDecisions, outages], [0, 0, 0, 0])
  assert.notEqual((await limiter.take('good')).source, 'outage')
  limiter.close()
}

for (const mode of MODES) {
  test(`${mode}: a hashTag function that throws is misuse: the caller gets the error, and nothing is sent`, async () => {
    await using open = await (KINDS[0] as (typeof KINDS)[0]).open([server])
    await throwsInTag(open.client, mode)
  })
}

longTest('so it is on a cluster, where the tag is asked for before anything else', async () => {
  const cluster = await RedisCluster.start()
  try {
    await using open = await (CLUSTER_CLIENTS[0] as (typeof CLUSTER_CLIENTS)[0]).open(cluster.nodes)
    for (const mode of MODES) await throwsInTag(open.client, mode)
  } finally {
    await cluster.stop()
  }
})

// In a short run each client has a third, by turns.
for (const [i, kind] of KINDS.entries()) {
  for (const [j, policy] of POLICIES.entries()) {
    for (const [k, mode] of modesOf(policy).entries()) {
      everyNth(i + j + k, 3)(
        `${kind.name}, ${policy.algorithm}, ${mode}: a name under which something else is kept is an outage of that key alone`,
        async () => {
          await using open = await kind.open([server])
          const limiter = createLimiter(policy, { store: redis(open.client, { prefix: 'type' }), mode, outage: 'open', ...NO_HASTE })
          const form = policy === RATE ? 'rate' : policy.algorithm
          await server.ask('SADD', `type:${form}:p:{bad}`, 'x')
          for (let i = 0; i < 5; i++) {
            assert.deepEqual(source(await limiter.take('bad')), ['outage', true])
            assert.deepEqual(source(await limiter.peek('bad')), ['outage', true])
            assert.notEqual((await limiter.take(`good ${i}`)).source, 'outage')
          }
          for (const verb of [limiter.block, limiter.penalize, limiter.refund]) {
            await assert.rejects(verb.call(limiter, 'bad', 5), { name: 'StoreError', code: 'OUTAGE', message: /this key: WRONGTYPE/ })
          }
          assert.deepEqual([limiter.stats().outages, limiter.stats().timeouts], [0, 0])
          assert.ok(limiter.stats().storeFailures >= 13)
          limiter.close()
          await server.ask('FLUSHALL')
        },
      )
    }
  }

  test(`${kind.name}: garbage in a value that a script trips over is an outage of that key alone, decided by mode`, async () => {
    await using open = await kind.open([server])
    await server.ask('SET', 'garbage:rate:p:{bad}', '1 2;not numbers')
    for (const [outage, allowed] of [
      ['local', true],
      ['open', true],
      ['closed', false],
    ] as const satisfies readonly (readonly [OutageMode, boolean])[]) {
      const limiter = createLimiter(RATE, { store: redis(open.client, { prefix: 'garbage' }), mode: 'exact', outage, ...NO_HASTE })
      for (let i = 0; i < 5; i++) assert.deepEqual(source(await limiter.take('bad')), ['outage', allowed])
      assert.equal((await limiter.take('good')).source, 'store')
      await assert.rejects(limiter.block('bad', 5), { code: 'OUTAGE', message: /this key: .*user_script/ })
      assert.equal(limiter.stats().outages, 0)
      limiter.close()
    }
  })
}

function source({ source, allowed }: { readonly source: string; readonly allowed: boolean }): readonly unknown[] {
  return [source, allowed]
}
