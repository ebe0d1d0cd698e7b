import { createLimiter, type SharedLimiter, tokenBucket } from 'sluicegate'
import { type PostgresClient, postgresStore as postgresCasStore, postgres as postgresStore } from 'sluicegate/postgres'
import { redis } from 'sluicegate/redis'
import { type CasStore, casStore } from 'sluicegate/store'
import { FleetLoad } from 'sluicegate-testkit/fleet-load.js'
import {
  ACCOUNT,
  KEYS,
  LOCAL_SHARE,
  machineOffMs,
  type NodeReport,
  type NodeStart,
  PG_RATE,
  PG_TIMEOUT_MS,
  REPORT_MS,
  REST_MS,
  TABLE,
} from './fleet.js'

// A process of a fleet: takes all the time, and reports ten times a second what came of it. It loads the library of its store alone: many start at once.

const CONNECTIONS = 4
const CALLERS = 6
/** Of the callers of keys that are new. */
const LONGER_REST_MS = 40
/** A take every few milliseconds, also while earlier ones wait for a store that does not answer. */
const [MANY_CALLERS, EACH_MS] = [16, 5]

/** What takes, and the limiter whose counters are told. */
interface Node {
  readonly loads: Readonly<Record<string, FleetLoad>>
  readonly counted: SharedLimiter
}

const start = JSON.parse(process.argv[2] as string) as NodeStart
const { loads, counted } = await (start.store === 'redis' ? overRedis(start) : overPostgres(start))
const names = Object.keys(loads)
const reported = new Map<string, number>()

const reporting = setInterval(() => process.send?.(report(false)), REPORT_MS)
process.once('disconnect', () => process.exit())
process.on('message', () => void stop())

async function stop(): Promise<void> {
  await Promise.all(Object.values(loads).map((load) => load.stop()))
  clearInterval(reporting)
  process.send?.(report(true))
}

function report(isLast: boolean): NodeReport {
  const offMs = machineOffMs()
  const takes = names.map((name) => {
    const all = loads[name]?.takes ?? []
    const news = all.slice(reported.get(name) ?? 0)
    reported.set(name, all.length)
    const told = news.map(({ key, askedMs, answeredMs, decision: { allowed, source } }) => ({
      key,
      askedMs: askedMs + offMs,
      answeredMs: answeredMs + offMs,
      decision: { allowed, source },
    }))
    return [name, told] as const
  })
  const { storeFailures, nodes } = counted.stats()
  const errors = Object.values(loads).flatMap((load) => load.errors.map(String))
  return { isLast, takes: Object.fromEntries(takes), errors, failures: storeFailures, nodes }
}

/** One budget, also without the store. */
async function overRedis({ url, policy }: Extract<NodeStart, { readonly store: 'redis' }>): Promise<Node> {
  const { createClient } = await import('@redis/client')
  const { limit, windowMs: window, burst } = policy
  const client = createClient({ url, disableOfflineQueue: true, socket: { reconnectStrategy: () => 100, connectTimeout: 500 } })
  client.on('error', () => undefined)
  void client.connect().catch(() => undefined)
  const counted = createLimiter(tokenBucket({ limit, window, burst, name: 'outage' }), { store: redis(client) })
  return { loads: { shared: new FleetLoad(counted, { keys: ['k'], callers: MANY_CALLERS, restMs: MANY_CALLERS * EACH_MS }) }, counted }
}

/** On a clock that is off from the clocks of all others, and of another pace. */
async function overPostgres({ url, driver, clock: own, form }: Extract<NodeStart, { readonly store: 'postgres' }>): Promise<Node> {
  const client = await clientOf(url, driver)
  const { limit, windowMs: window, burst } = PG_RATE
  const rate = tokenBucket({ limit, window, burst, name: 'chaos' })
  const common = { timeout: PG_TIMEOUT_MS, clock: { nowMs: () => performance.now() * own.pace + own.offMs } }
  const storeOf = (prefix?: string) => {
    if (form === 'steps') return postgresStore(client, { table: TABLE, ...(prefix && { prefix }) })
    return casStore(swapping(postgresCasStore({ client, table: TABLE })), prefix === undefined ? {} : { prefix })
  }
  const rated = { ...common, share: LOCAL_SHARE } as const
  const exactly = { ...common, mode: 'exact', outage: 'closed' } as const
  const exact = createLimiter(rate, { ...rated, store: storeOf('exact'), mode: 'exact' })
  const leased = createLimiter(rate, { ...rated, store: storeOf('leased') })
  const account = createLimiter(ACCOUNT, { ...exactly, store: storeOf() })
  const ofNewKeys = createLimiter(ACCOUNT, { ...exactly, store: storeOf('new') })
  let newKeys = 0
  const inNewKeys = { take: () => ofNewKeys.take(`${process.pid} ${newKeys++}`) }
  const loads = {
    exact: new FleetLoad(exact, { keys: KEYS, callers: CALLERS, restMs: REST_MS }),
    leased: new FleetLoad(leased, { keys: KEYS, callers: CALLERS, restMs: REST_MS }),
    account: new FleetLoad(account, { keys: KEYS, callers: KEYS.length, restMs: REST_MS }),
    'new keys': new FleetLoad(inNewKeys, { keys: ['new'], callers: 1, restMs: LONGER_REST_MS }),
  }
  return { loads, counted: account }
}

/** The same without steps. */
function swapping(store: Required<CasStore>): CasStore {
  return {
    name: store.name,
    read: (...asked) => store.read(...asked),
    readAll: (...asked) => store.readAll(...asked),
    swap: (...asked) => store.swap(...asked),
    swapAll: (...asked) => store.swapAll(...asked),
    swapMany: (...asked) => store.swapMany(...asked),
    connectionsOpened: () => store.connectionsOpened(),
  }
}

async function clientOf(url: string, driver: 'pg' | 'postgres'): Promise<PostgresClient> {
  // With types to fetch, a connection that breaks before it has them ends the process: the driver lets that rejection go.
  if (driver === 'postgres')
    return (await import('postgres')).default(url, { max: CONNECTIONS, connect_timeout: 1, fetch_types: false, onnotice: () => undefined })
  const { default: pg } = await import('pg')
  const pool = new pg.Pool({ connectionString: url, max: CONNECTIONS, connectionTimeoutMillis: 1000, query_timeout: 2000 })
  pool.on('error', () => undefined)
  return pool
}
