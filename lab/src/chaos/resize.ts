import { createLimiter, type SharedLimiter, tokenBucket } from 'sluicegate'
import { redis } from 'sluicegate/redis'
import { FleetLoad, RedisCluster, until } from 'sluicegate-testkit'
import { clusterClients } from './subject.js'
import { stateOf, watchdog } from './watched.js'

const KEYS = Array.from({ length: 300 }, (_, i) => `user:${i}`)
/** So slow a rate that nothing comes back meanwhile: totals are exact. */
const BURST = 10_000
/** Thousands of slots take their time. */
const LONGEST_MS = 400_000
const POLICY = tokenBucket({ limit: 1, window: '6h', burst: BURST, name: 'resize' })

export type ResizeReport = Awaited<ReturnType<typeof resize>>

/** A fourth primary joins a 3+3 cluster, gets `slots` slots, gives them back and leaves, all under load. */
export async function resize(slots: number, progress: (line: string) => void = () => undefined) {
  await using cluster = await RedisCluster.start()
  const clients = await clusterClients(cluster.roots)
  const subjects = clients.map(({ name, client }) => {
    const limiter = createLimiter(POLICY, { store: redis(client, { prefix: name }), mode: 'exact', outage: 'closed', timeout: 20_000 })
    return { name, limiter, load: new FleetLoad(limiter, { keys: KEYS, callers: 16 }) }
  })
  const watched = watchdog(() => stateOf(cluster.nodes, subjects), LONGEST_MS)
  const stopped = (): Promise<unknown> => Promise.all(subjects.map(({ load }) => load.stop()))
  const beganMs = performance.now()
  try {
    const old = await cluster.primaries()
    const fourth = await watched('a fourth primary joins', cluster.join())
    progress('a fourth primary has joined')
    await watched('it gets slots', cluster.reshard(fourth, slots))
    progress(`it has ${slots} slots`)
    for (const [i, primary] of old.entries()) {
      await watched(`${primary.port} gets its own back`, cluster.reshard(primary, shareOf(slots, old.length, i), [fourth]))
    }
    progress('it has given them back')
    await watched('it leaves', cluster.leave(fourth))
    await watched('every caller has the last answer', stopped())
    const reports = subjects.map(async ({ name, limiter, load }) => ({
      name,
      takes: load.takes.length,
      errors: load.errors.length,
      /** Calls that the client gave up. */
      failures: limiter.stats().storeFailures,
      slowestMs: Math.round(load.slowestMs),
      /** Keys of which the store charged something else than callers got. */
      wrongKeys: await wrongKeys(limiter, load),
    }))
    return {
      slots,
      seconds: Math.round((performance.now() - beganMs) / 1000),
      clients: await watched('the store tells what it charged', Promise.all(reports)),
    }
  } finally {
    // After a failure, subjects that may have failed are not awaited.
    void stopped()
    for (const client of clients) client.close()
  }
}

function shareOf(slots: number, primaries: number, i: number): number {
  const share = Math.floor(slots / primaries)
  return i === primaries - 1 ? slots - share * (primaries - 1) : share
}

/** Also of what the client still thinks is on the node that has left the store is asked, not the limiter by itself. */
async function charged(limiter: SharedLimiter, key: string): Promise<number> {
  let tokens = 0
  await until(`the store tells of ${key}`, async () => {
    const { source, remaining } = await limiter.peek(key)
    tokens = BURST - remaining
    return source === 'store'
  })
  return tokens
}

async function wrongKeys(limiter: SharedLimiter, { takes }: FleetLoad): Promise<number> {
  const admitted = new Map<string, number>()
  for (const { key, decision } of takes) if (decision.allowed) admitted.set(key, (admitted.get(key) ?? 0) + 1)
  const tokens = await Promise.all(KEYS.map((key) => charged(limiter, key)))
  return KEYS.filter((key, i) => tokens[i] !== (admitted.get(key) ?? 0)).length
}
