import pg from 'pg'
import { createLimiter, fixedWindow } from 'sluicegate'
import { postgres } from 'sluicegate/postgres'
import { requireRival } from '../rivals.js'

/** What callers did together. */
interface Calls {
  readonly decisions: number
  readonly admitted: number
  readonly ms: number
  /** Of 100 decisions 99 took no longer. */
  readonly p99Ms: number
}

/** Decisions of which it is remembered how long they took, at most. */
const MOST_REMEMBERED = 100_000

/** Answers without a promise, before the event loop looks for replies again. */
const AT_ONCE = 64

/** Callers with one question at a time each, until the time or the number of decisions is over. */
export async function callFor(
  contender: Contender,
  callers: number,
  keyOf: () => string,
  ms: number,
  most = Number.POSITIVE_INFINITY,
): Promise<Calls> {
  const fromMs = performance.now()
  let decisions = 0
  let admitted = 0
  let atOnce = 0
  const tookMs: number[] = []
  const caller = async (): Promise<void> => {
    let inARow = 0
    while (performance.now() - fromMs < ms && decisions < most) {
      const answer = contender.take(keyOf())
      let allowed: boolean
      if (typeof answer === 'boolean') {
        allowed = answer
        atOnce++
        if (++inARow % AT_ONCE === 0) await new Promise((resolve) => setImmediate(resolve))
      } else {
        const sentMs = performance.now()
        allowed = await answer
        if (tookMs.length < MOST_REMEMBERED) tookMs.push(performance.now() - sentMs)
      }
      decisions++
      if (allowed) admitted++
    }
  }
  await Promise.all(Array.from({ length: callers }, caller))
  const passedMs = performance.now() - fromMs
  tookMs.sort((a, b) => a - b)
  const place = Math.floor((tookMs.length + atOnce) * 0.99) - atOnce
  return { decisions, admitted, ms: passedMs, p99Ms: tookMs[Math.min(place, tookMs.length - 1)] ?? 0 }
}

/** A limit of N requests a day, for each key. */
export interface Contender {
  readonly name: string
  take(key: string): boolean | Promise<boolean>
  close(): Promise<void>
}

export type OpenContender = (url: string, limit: number) => Promise<Contender>

/** So much that all passes. */
export const PLENTY = 1_000_000_000

/** Of a process: eight of each contender fit into one server. */
const CONNECTIONS = 8
const DAY_S = 86_400

function poolOf(url: string): pg.Pool {
  const pool = new pg.Pool({ connectionString: url, max: CONNECTIONS })
  pool.on('error', () => undefined)
  return pool
}

/** Tables of ours: one that a crash empties, which is the default, and one that is logged, as theirs are. */
export const TABLES = [{}, { table: 'sluicegate_logged', logged: true }] as const

function ours(
  mode: 'exact' | 'leased',
  { table, logged }: { readonly table?: string; readonly logged?: boolean } = TABLES[0],
): OpenContender {
  return async (url, limit) => {
    const client = poolOf(url)
    const policy = fixedWindow({ limit, window: '1d', name: `day-${limit}` })
    const limiter = createLimiter(policy, { store: postgres(client, { ...(table && { table }) }), mode, outage: 'closed', timeout: 60_000 })
    return {
      name: `sluicegate ${mode}${logged === true ? ', logged' : ''}`,
      take: (key) => {
        const decision = limiter.take(key)
        return 'then' in decision ? Promise.resolve(decision).then(({ allowed }) => allowed) : decision.allowed
      },
      close: async () => {
        limiter.close()
        await client.end()
      },
    }
  }
}

interface Flexible {
  consume(key: string): Promise<unknown>
}

interface FlexibleModule {
  readonly RateLimiterPostgres: new (options: object, ready: (error?: Error) => void) => Flexible
}

export async function flexible(url: string, limit: number): Promise<Contender> {
  const { RateLimiterPostgres } = requireRival('rate-limiter-flexible') as FlexibleModule
  const storeClient = poolOf(url)
  const limiter = await new Promise<Flexible>((resolve, reject) => {
    const options = { storeClient, storeType: 'pool', points: limit, duration: DAY_S, tableName: 'flexible', keyPrefix: String(limit) }
    const made: Flexible = new RateLimiterPostgres(options, (error) => (error ? reject(error) : resolve(made)))
  })
  const take = (key: string): Promise<boolean> =>
    limiter.consume(key).then(
      () => true,
      (denial: unknown) => {
        if (denial instanceof Error) throw denial
        return false
      },
    )
  return { name: 'rate-limiter-flexible', take, close: () => storeClient.end() }
}

interface ExpressStore {
  init(options: { readonly windowMs: number }): void
  increment(key: string): Promise<{ readonly totalHits: number }>
}

interface ExpressModule {
  readonly PostgresStore: new (config: object, prefix: string) => ExpressStore
}

/** The store counts, and express-rate-limit compares. Its migrations run when the first is made, so the first call waits until it answers. */
async function express(url: string, limit: number): Promise<Contender> {
  const { PostgresStore } = requireRival('@acpr/rate-limit-postgresql') as ExpressModule
  const store = new PostgresStore({ connectionString: url, max: CONNECTIONS }, `limit-${limit}`)
  store.init({ windowMs: DAY_S * 1000 })
  for (let tries = 0; tries < 50; tries++) {
    const isReady = await store.increment('first').then(
      () => true,
      () => false,
    )
    if (isReady) break
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
  return {
    name: '@acpr/rate-limit-postgresql',
    take: async (key) => (await store.increment(key)).totalHits <= limit,
    close: async () => (store as { readonly pool?: { end(): Promise<void> } }).pool?.end(),
  }
}

export const CONTENDERS: readonly OpenContender[] = [ours('exact'), ours('leased'), ours('exact', TABLES[1]), flexible, express]
