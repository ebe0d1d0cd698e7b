import assert from 'node:assert/strict'
import { test } from 'node:test'
import { longTest, shortOrLong } from 'sluicegate-testkit'
import { allow, DOCUMENTED_COMMANDS as COMMANDS, clusterOfFile, serverOfFile, USER } from 'sluicegate-testkit/redis/own-redis.js'
import {
  CLUSTER_CLIENTS,
  type ClientKind,
  clientsForRun,
  NO_HASTE,
  type OpenClient,
  SERVER_CLIENTS,
} from 'sluicegate-testkit/redis/redis-clients.js'
import { createLimiter } from '../create-limiter.js'
import { StoreError } from '../errors.js'
import { allOf } from '../policy/all-of.js'
import type { Policy } from '../policy/policy.js'
import { concurrency, fixedWindow, gcra, slidingLog, slidingWindow } from '../policy/single-policy.js'
import { redis } from './redis.js'
import { SCRIPTS } from './scripts.gen.js'

/** What clients need to find their way on a cluster, as it is documented. */
const ON_CLUSTERS = {
  'node-redis': ['cluster|slots', 'asking'],
  ioredis: ['cluster|slots', 'asking', 'cluster|info'],
  'valkey-glide': ['cluster|slots', 'asking', 'ping'],
} as const

const server = await serverOfFile()
const cluster = await clusterOfFile()

function keysWith({ keyPrefix = '' }: ClientKind): string {
  return `${keyPrefix}sluicegate:*`
}

/** Every verb on every form, such that every command of every script is called; rejects when the server refused one. */
async function course({ client }: OpenClient, name: string): Promise<void> {
  const options = { store: redis(client), ...NO_HASTE }
  const policies = [
    gcra({ limit: 5, window: '1m', burst: 5, name }),
    fixedWindow({ limit: 5, window: '1d', name }),
    slidingWindow({ limit: 5, window: '1d', name }),
    slidingLog({ limit: 5, window: '1d', name }),
  ]
  for (const policy of policies) {
    const limiter = createLimiter(policy, options)
    for (const cost of [1, 2, 3]) isOfStore(await limiter.take('k', cost))
    isOfStore(await limiter.peek('k'))
    await limiter.penalize('k', 1)
    await limiter.refund('k', 2)
    await limiter.refund('k', 5)
    // As while a new version of the program is rolled out.
    const changed = createLimiter({ ...policy, limit: 6, burst: 6 } as Policy, options)
    isOfStore(await changed.take('k'))
    isOfStore(await limiter.take('k'))
    await limiter.refund('k', 2)
    const booked = await limiter.reserve('k', 4)
    isOfStore(booked.decision)
    await booked.settle(1)
    await limiter.block('k', '1m')
    await limiter.reset('k')
  }
  const permits = createLimiter(concurrency({ limit: 2, name }), options)
  const permit = await permits.take('k')
  isOfStore(permit)
  for (let i = 0; i < 2; i++) isOfStore(await permits.take('k'))
  await permit.heartbeat()
  await permit.release()
  await permits.penalize('k', 1)
  await permits.refund('k', 1)
  await permits.reset('k')
  const both = createLimiter(
    allOf([fixedWindow({ limit: 5, window: '1d', name: `${name} a` }), slidingLog({ limit: 5, window: '1d', name: `${name} b` })]),
    options,
  )
  isOfStore(await both.take('k'))
  const leased = createLimiter(gcra({ limit: 1000, window: '1s', burst: 1000, name: `${name} leased` }), {
    ...options,
    mode: 'leased',
    // On a busy machine no shorter lease arrives in time.
    lease: 400,
  })
  for (const { source } of await Promise.all([leased.take('k'), leased.take('k')])) assert.equal(source, 'lease')
}

function isOfStore({ source }: { readonly source: string }): void {
  if (source !== 'store') throw new StoreError('OUTAGE', `answered by ${source}`)
}

test('the documented commands are those that the scripts call, and EVAL, EVALSHA and INFO', () => {
  const sources = Object.values(SCRIPTS).map(({ source }) => source)
  const called = sources.flatMap((source) =>
    [...source.matchAll(/(?:redis\.call|inShares)\('([A-Z]+)'/g)].map(([, command]) => (command as string).toLowerCase()),
  )
  assert.deepEqual([...COMMANDS].sort(), [...new Set([...called, 'eval', 'evalsha', 'info'])].sort())
})

for (const kind of clientsForRun(SERVER_CLIENTS)) {
  test(`a user who may do nothing else can use all verbs with ${kind.name}`, async () => {
    await allow([server], COMMANDS, keysWith(kind))
    await using open = await kind.open([server], USER)
    await course(open, `all, ${kind.name}`)
  })
}

for (const kind of clientsForRun(CLUSTER_CLIENTS)) {
  test(`with what it takes to find one's way, so can a user of ${kind.name}`, async () => {
    await allow(cluster.nodes, [...COMMANDS, ...ON_CLUSTERS[kind.library]], keysWith(kind))
    await using open = await kind.open(cluster.roots, USER)
    await course(open, `all, ${kind.name}`)
  })
}

longTest('none of the commands could be left out, but INFO', async () => {
  const kind = SERVER_CLIENTS[0] as ClientKind
  // INFO comes last.
  for (const command of [...COMMANDS].reverse().filter((_, i) => i % shortOrLong(4, 1) === 0)) {
    await allow(
      [server],
      COMMANDS.filter((other) => other !== command),
    )
    await server.ask('SCRIPT', 'FLUSH')
    await using open = await kind.open([server], USER)
    const done = course(open, `without ${command}`).then(
      () => 'done',
      () => 'refused',
    )
    assert.equal(await done, command === 'info' ? 'done' : 'refused', command)
  }
})
