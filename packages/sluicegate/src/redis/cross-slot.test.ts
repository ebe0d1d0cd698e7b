import assert from 'node:assert/strict'
import { test } from 'node:test'
import { clusterOfFile, serverOfFile } from 'sluicegate-testkit/redis/own-redis.js'
import { CLUSTER_CLIENTS, clientsForRun, NO_HASTE, SERVER_CLIENTS } from 'sluicegate-testkit/redis/redis-clients.js'
import { createLimiter } from '../create-limiter.js'
import { PolicyError } from '../errors.js'
import { allOf } from '../policy/all-of.js'
import { fixedWindow, tokenBucket } from '../policy/single-policy.js'
import { redis } from './redis.js'

const server = await serverOfFile()
const cluster = await clusterOfFile()

const policy = allOf([tokenBucket({ limit: 10, window: '1m', name: 'user' }), fixedWindow({ limit: 100, window: '1d', name: 'tenant' })])
const KEYS = ['user:1', 'tenant:1'] as const

const isCrossSlot = (error: unknown): boolean =>
  error instanceof PolicyError && error.code === 'CROSS_SLOT' && /give hashTag/.test(error.message)

for (const kind of clientsForRun(CLUSTER_CLIENTS)) {
  test(`on a cluster, keys of one decision in different slots are refused before anything is sent by ${kind.name}`, async () => {
    await using open = await kind.open(cluster.roots)
    const limiter = createLimiter(policy, { store: redis(open.client, { prefix: kind.name }), ...NO_HASTE })
    const verbs = [
      () => limiter.take(KEYS),
      () => limiter.peek(KEYS),
      () => limiter.reset(KEYS),
      () => limiter.block(KEYS, '1s'),
      () => limiter.refund(KEYS, 1),
    ]
    for (const verb of verbs) await assert.rejects(async () => verb(), isCrossSlot)
    assert.equal((await limiter.peek('user:1')).remaining, 10)
  })

  test(`on a cluster, one key for all parts, or a tag that they have in common, is charged together by ${kind.name}`, async () => {
    await using open = await kind.open(cluster.roots)
    const untagged = createLimiter(policy, { store: redis(open.client, { prefix: `one ${kind.name}` }), ...NO_HASTE })
    assert.deepEqual(
      (await untagged.take('user:1', 3)).parts?.map(({ remaining }) => remaining),
      [7, 97],
    )
    const numberOf = (key: string): string => key.split(':')[1] as string
    for (const hashTag of ['common', numberOf]) {
      const limiter = createLimiter(policy, {
        store: redis(open.client, { prefix: `${typeof hashTag} ${kind.name}`, hashTag }),
        ...NO_HASTE,
      })
      const { parts, source } = await limiter.take(KEYS, 3)
      assert.deepEqual([source, parts?.map(({ remaining }) => remaining)], ['store', [7, 97]])
      assert.equal((await limiter.take(KEYS, 8)).allowed, false)
      assert.deepEqual(
        (await limiter.peek(KEYS)).parts?.map(({ remaining }) => remaining),
        [7, 97],
      )
    }
    const limiter = createLimiter(policy, { store: redis(open.client, { hashTag: numberOf }), ...NO_HASTE })
    await assert.rejects(async () => limiter.take(['user:1', 'tenant:2']), isCrossSlot)
  })
}

for (const kind of clientsForRun(SERVER_CLIENTS)) {
  test(`on a single server any keys are charged together by ${kind.name}`, async () => {
    await using open = await kind.open([server])
    const limiter = createLimiter(policy, { store: redis(open.client, { prefix: kind.name }), ...NO_HASTE })
    assert.deepEqual(
      (await limiter.take(KEYS, 3)).parts?.map(({ remaining }) => remaining),
      [7, 97],
    )
  })
}
