import assert from 'node:assert/strict'
import { test } from 'node:test'
import { GlideClient, GlideClusterClient } from '@valkey/valkey-glide'
import { IS_LONG_RUN, type RedisProcess, until } from 'sluicegate-testkit'
import { clusterOfFile, serverOfFile } from 'sluicegate-testkit/redis/own-redis.js'
import { type Address, CLUSTER_CLIENTS, type ClientKind, clientsForRun, SERVER_CLIENTS } from 'sluicegate-testkit/redis/redis-clients.js'
import { createLimiter } from '../../create-limiter.js'
import { fixedWindow } from '../../policy/single-policy.js'
import { redis } from '../redis.js'
import { hashSlot } from '../redis-keys.js'

// Commands queued in a client for a lost server, for longer than their callers wait. A server of these tests forgets everything
// when it ends: whatever it knows of a key afterwards was written afterwards.

const server = await serverOfFile()
const cluster = await clusterOfFile()

const LIMIT = 1000
const TIMEOUT_MS = 200
const AT_ONCE = 20
const policy = fixedWindow({ limit: LIMIT, window: '1d', name: 'day' })

interface Home {
  readonly roots: readonly Address[]
  readonly holder: RedisProcess
  readonly ready: () => Promise<void>
}

function chargesNothingLate(kind: ClientKind, home: (slot: number) => Promise<Home>): void {
  test(`${kind.name}: what waited for a server that was gone, and was given up, is not charged when it is back`, async () => {
    const prefix = `given up ${kind.name}`
    const { roots, holder, ready } = await home(hashSlot('k'))
    await using open = await kind.open(roots)
    const options = { store: redis(open.client, { prefix }), mode: 'exact', outage: 'closed', timeout: TIMEOUT_MS } as const
    // Each gives up for itself: one whose breaker is open would send nothing.
    const limiters = Array.from({ length: 3 }, () => createLimiter(policy, options))
    const [first = limiters[0] as never] = limiters
    await until('the store decides', async () => (await first.take('k')).source === 'store')
    await holder.kill()
    for (const limiter of limiters) {
      const takes = await Promise.all(Array.from({ length: AT_ONCE }, () => limiter.take('k')))
      assert.ok(takes.every(({ allowed, source }) => !allowed && source === 'outage'))
    }
    await holder.start()
    await ready()
    let standing = await first.peek('k')
    await until('the store decides again', async () => {
      standing = await first.peek('k')
      return standing.source === 'store'
    })
    assert.equal(standing.remaining, LIMIT)
    // Behind that answer nothing more of it comes.
    assert.equal((await first.take('k')).remaining, LIMIT - 1)
  })
}

/** It can signal nothing, and drops what waits when its own time is over: that is to be as short. */
const HASTY_GLIDE = {
  name: 'valkey-glide with a request time-out as short',
  library: 'valkey-glide',
  open: async (addresses) => glideIn(await GlideClient.createClient({ addresses: bare(addresses), requestTimeout: TIMEOUT_MS })),
} satisfies ClientKind
const HASTY_GLIDE_ON_CLUSTER = {
  name: 'valkey-glide with a request time-out as short, on a cluster',
  library: 'valkey-glide',
  open: async (addresses) => glideIn(await GlideClusterClient.createClient({ addresses: bare(addresses), requestTimeout: TIMEOUT_MS })),
} satisfies ClientKind

function glideIn(client: GlideClient | GlideClusterClient) {
  return { client, [Symbol.asyncDispose]: async () => client.close() }
}

function bare(addresses: readonly Address[]): Address[] {
  return addresses.map(({ host, port }) => ({ host, port }))
}

const recalls = ({ library }: ClientKind): boolean => library !== 'valkey-glide'

for (const kind of clientsForRun([...SERVER_CLIENTS.filter(recalls), HASTY_GLIDE])) {
  chargesNothingLate(kind, async () => ({ roots: [server], holder: server, ready: async () => undefined }))
}
for (const kind of IS_LONG_RUN ? [...CLUSTER_CLIENTS.filter(recalls), HASTY_GLIDE_ON_CLUSTER] : []) {
  chargesNothingLate(kind, async (slot) => ({ roots: cluster.roots, holder: await cluster.primaryOf(slot), ready: () => cluster.ready() }))
}
