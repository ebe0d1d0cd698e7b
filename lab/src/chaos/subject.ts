import { createCluster, createSentinel } from '@redis/client'
import { Cluster, Redis } from 'ioredis'
import { createLimiter, tokenBucket } from 'sluicegate'
import { type RedisClient, redis } from 'sluicegate/redis'
import { type Admission, FleetLoad, type RateSpec, worstExcess } from 'sluicegate-testkit'
import { LOCAL_SHARE } from './fleet.js'
import type { RecordedTake, Subject } from './recorded.js'
import { watchdog } from './watched.js'

/** Far less than callers ask for: only who is denied now and then can see whether too much is admitted. */
export const RATE: RateSpec = { limit: 30, windowMs: 1000, burst: 30 }
export const TIMEOUT_MS = 100

/** Each client, exact and leased, with callers who ask all the time about these keys. */
export function subjectsOn(clients: readonly OpenClient[], keys: readonly string[]): Subject[] {
  const { limit, windowMs: window, burst } = RATE
  return clients.flatMap(({ name, client }) =>
    (['exact', 'leased'] as const).map((mode) => {
      const policy = tokenBucket({ limit, window, burst, name: 'chaos' })
      const limiter = createLimiter(policy, {
        store: redis(client, { prefix: `${name} ${mode}` }),
        mode,
        share: LOCAL_SHARE,
        timeout: TIMEOUT_MS,
      })
      const load = new FleetLoad(limiter, { keys, callers: 3 * keys.length, restMs: 5 })
      return { name: `${name}, ${mode}`, bound: RATE, processes: 1, limiter, load }
    }),
  )
}

/** What became of a subject. */
export function reportOf({ name, bound, load }: Subject, recoveryMs: readonly number[]) {
  const out = load.takes.filter(({ decision }) => decision.source === 'outage')
  return {
    name,
    takes: load.takes.length,
    admitted: load.takes.filter(isAdmitted).length,
    errors: load.errors.length,
    slowestMs: Math.round(load.slowestMs),
    /** Decisions without the store, and what was admitted by them. */
    outageDecisions: out.length,
    outageAdmitted: out.filter(isAdmitted).length,
    /** Tokens over the policy, of the worst key in its worst interval: of what the store admitted, and of everything. */
    over: worstOf(
      bound,
      load.takes.filter(({ decision }) => decision.source !== 'outage'),
    ),
    overWithShare: worstOf(bound, load.takes),
    /** From each kill until the store decided about every key again, in milliseconds. */
    recoveryMs,
  }
}

/** When a caller got his answer is up to a time-out after the store gave it, which lets its rate look higher for that long. */
function worstOf(bound: RateSpec, takes: readonly RecordedTake[]): number {
  const worst = admittedByKey(takes).map((admitted) => worstExcess(bound, admitted.map(admissionOf)))
  return Number(Math.max(0, ...worst).toFixed(1))
}

/** The admitted takes of each key. */
export function admittedByKey(takes: readonly RecordedTake[]): RecordedTake[][] {
  const byKey = new Map<string, RecordedTake[]>()
  for (const take of takes.filter(isAdmitted)) {
    const admitted = byKey.get(take.key) ?? []
    byKey.set(take.key, admitted)
    admitted.push(take)
  }
  return [...byKey.values()]
}

function admissionOf({ answeredMs }: RecordedTake): Admission {
  return { atUs: Math.round(answeredMs * 1000), cost: 1 }
}

function isAdmitted({ decision }: RecordedTake): boolean {
  return decision.allowed
}

type IsServed = (decision: RecordedTake['decision']) => boolean

/** An answer of the store. */
const byStore: IsServed = ({ source }) => source !== 'outage'

/** Whether every subject had an answer of the store about every key, of those asked for since then. */
export function served(subjects: readonly Subject[], keys: readonly string[], sinceMs: number, isServed = byStore): () => boolean {
  return () => unserved(subjects, keys, sinceMs, isServed).length === 0
}

export function unserved(subjects: readonly Subject[], keys: readonly string[], sinceMs: number, isServed = byStore): string[] {
  return subjects.flatMap((subject) => {
    const answered = firstAnswers(subject, sinceMs, isServed)
    return keys.filter((key) => !answered.has(key)).map((key) => `${subject.name}, ${key}`)
  })
}

/** When the last of the keys had its first answer of the store. */
export function servedMs(subject: Subject, keys: readonly string[], sinceMs: number, isServed = byStore): number {
  const answered = firstAnswers(subject, sinceMs, isServed)
  return Math.max(...keys.map((key) => answered.get(key) ?? Number.NaN))
}

function firstAnswers({ load }: Subject, sinceMs: number, isServed: IsServed): ReadonlyMap<string, number> {
  const first = new Map<string, number>()
  for (const { key, answeredMs, decision } of load.since(sinceMs))
    if (isServed(decision)) first.set(key, Math.min(answeredMs, first.get(key) ?? answeredMs))
  return first
}

/** Where a client may begin to ask. */
interface Root {
  readonly host: string
  readonly port: number
}

/** A connected client. */
export interface OpenClient {
  readonly name: string
  readonly client: RedisClient
  close(): unknown
}

/** node-redis waits for 5 s by default before it looks for the new primary. */
const LOOK_AGAIN_MS = 300

/** One client of each kind that tells which server has a slot, on a cluster. */
export async function clusterClients(roots: readonly Root[]): Promise<OpenClient[]> {
  const nodeRedis = createCluster({
    rootNodes: roots.map(({ host, port }) => ({ url: `redis://${host}:${port}` })),
    topologyRefreshOnReconnectionAttemptStrategy: LOOK_AGAIN_MS,
  })
  return opened(nodeRedis, () => new Cluster(roots.map(({ host, port }) => ({ host, port }))))
}

/** The same, of those who ask sentinels for the primary called so. */
export async function sentinelClients(roots: readonly Root[], name: string): Promise<OpenClient[]> {
  const addresses = roots.map(({ host, port }) => ({ host, port }))
  const nodeRedis = createSentinel({ name, sentinelRootNodes: addresses })
  return opened(nodeRedis, () => new Redis({ name, sentinels: addresses }))
}

type NodeRedis = RedisClient & { on(event: 'error', listener: () => void): unknown; connect(): Promise<unknown>; destroy(): unknown }

async function opened(nodeRedis: NodeRedis, other: () => Redis | Cluster): Promise<OpenClient[]> {
  nodeRedis.on('error', () => undefined)
  await watchdog(async () => 'it has not said why')('node-redis connects', nodeRedis.connect())
  const ioredis = other()
  ioredis.on('error', () => undefined)
  const ready = new Promise<void>((resolve) => ioredis.once('ready', () => resolve()))
  await watchdog(async () => `it is ${ioredis.status}`)('ioredis connects', ready)
  return [
    { name: 'node-redis', client: nodeRedis, close: () => nodeRedis.destroy() },
    { name: 'ioredis', client: ioredis, close: () => ioredis.disconnect() },
  ]
}
