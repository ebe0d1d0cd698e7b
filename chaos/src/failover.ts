import { RedisCluster, type RedisProcess, until } from 'sluicegate-testkit'
import { clusterClients } from './clients.js'
import { LOCAL_SHARE, RATE, reportOf, type Subject, type SubjectReport, subjectsOn, TIMEOUT_MS } from './subject.js'

const KEYS = Array.from({ length: 9 }, (_, i) => `user:${i}`)
/** As the cluster is set up: after so long a silence a primary is taken for failed. */
const NODE_TIMEOUT_MS = 1000
/** On loopback, under load. */
const REPLICATION_LAG_MS = 100

export interface FailoverReport {
  readonly failovers: number
  /** Milliseconds from the kill until every subject had an answer of the store about every key again, of each failover. */
  readonly recoveryMs: readonly number[]
  /** Tokens by which a key may be over the policy after that many failovers of its shard. */
  readonly allowedOver: number
  /** What the share of one process may add while shards are out. */
  readonly allowedShare: number
  readonly subjects: readonly SubjectReport[]
}

/** Kills the primaries of a 3+3 cluster one after another, under load, and lets each come back as a replica. */
export async function failovers(count: number, told: (line: string) => void = () => undefined): Promise<FailoverReport> {
  await using cluster = await RedisCluster.start()
  const clients = await clusterClients(cluster.roots)
  const subjects = subjectsOn(clients, KEYS)
  const beganMs = performance.now()
  try {
    await until('the store decides', served(subjects, 0))
    const recoveryMs: number[] = []
    const killed = new Map<number, number>()
    for (let round = 0; round < count; round++) {
      const shards = (await cluster.primaries()).sort((a, b) => a.port - b.port)
      const primary = shards[round % shards.length] as RedisProcess
      killed.set(round % shards.length, (killed.get(round % shards.length) ?? 0) + 1)
      recoveryMs.push(await failover(cluster, primary, subjects))
      told(`failover ${round + 1} of ${count}: ${recoveryMs.at(-1)} ms`)
    }
    const secondsOut = recoveryMs.reduce((sum, ms) => sum + ms, 0) / 1000
    await Promise.all(subjects.map(({ load }) => load.stop()))
    return {
      failovers: count,
      recoveryMs,
      allowedOver: overPerFailover() * count + slack(),
      allowedShare: LOCAL_SHARE * (RATE.burst + RATE.limit * ((performance.now() - beganMs) / 1000)) + Math.ceil(secondsOut),
      subjects: subjects.map(reportOf),
    }
  } finally {
    await Promise.all(subjects.map(({ load }) => load.stop()))
    for (const client of clients) client.close()
  }
}

async function failover(cluster: RedisCluster, primary: RedisProcess, subjects: readonly Subject[]): Promise<number> {
  const killedMs = performance.now()
  await primary.kill()
  await until(
    'a replica takes over',
    async () => !(await cluster.primaries()).includes(primary) && (await cluster.primaries()).length === 3,
  )
  const sinceMs = performance.now()
  await until('the store decides about every key', served(subjects, sinceMs)).catch((error) => {
    throw new Error(`still without the store: ${unserved(subjects, sinceMs).join('; ')}`, { cause: error })
  })
  const recoveryMs = Math.round(performance.now() - killedMs)
  await primary.start()
  await cluster.ready()
  const isFollowing = async (): Promise<boolean> => (await primary.ask('INFO', 'replication')).includes('master_link_status:up')
  await until('the old primary follows the new one', isFollowing)
  return recoveryMs
}

/** Whether every subject had an answer of the store about every key, of those asked for since then. */
function served(subjects: readonly Subject[], sinceMs: number): () => boolean {
  return () => unserved(subjects, sinceMs).length === 0
}

function unserved(subjects: readonly Subject[], sinceMs: number): string[] {
  return subjects.flatMap(({ name, load }) => {
    const recent = load.since(sinceMs).filter(({ decision }) => decision.source !== 'outage')
    const answered = new Set(recent.map(({ key }) => key))
    return KEYS.filter((key) => !answered.has(key)).map((key) => `${name}, ${key}`)
  })
}

/** burst + rate * (replication lag + node timeout) */
export function overPerFailover(): number {
  return RATE.burst + (RATE.limit / RATE.windowMs) * (REPLICATION_LAG_MS + NODE_TIMEOUT_MS)
}

/** An answer may reach its caller so much later than the store gave it. */
export function slack(): number {
  return (RATE.limit / RATE.windowMs) * 2 * TIMEOUT_MS
}
