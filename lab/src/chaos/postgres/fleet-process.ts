import pg from 'pg'
import postgres from 'postgres'
import { type Clock, createLimiter, type SharedLimiter, tokenBucket } from 'sluicegate'
import { type PostgresClient, postgres as postgresStore } from 'sluicegate/postgres'
import { FleetLoad } from 'sluicegate-testkit'
import { LOCAL_SHARE } from '../subject.js'
import {
  ACCOUNT,
  KEYS,
  machineOffMs,
  type NodeReport,
  type NodeStart,
  PG_RATE,
  PG_TIMEOUT_MS,
  REPORT_MS,
  REST_MS,
  type SubjectName,
} from './fleet.js'

// A process of a fleet over PostgreSQL: takes all the time, and reports ten times a second what came of it.

const CONNECTIONS = 4
const CALLERS = 6
/** Of the callers of keys that are new. */
const LONGER_REST_MS = 40

const { url, table, driver, clock } = JSON.parse(process.argv[2] as string) as NodeStart
const client = clientOf()
const { limit, windowMs: window, burst } = PG_RATE
const rate = tokenBucket({ limit, window, burst, name: 'chaos' })
const common = { timeout: PG_TIMEOUT_MS, clock: ownClock() } as const
const storeOf = (prefix?: string) => postgresStore(client, { table, ...(prefix && { prefix }) })
const rated = { ...common, localShare: LOCAL_SHARE } as const
const counted = { ...common, mode: 'exact', outage: 'closed' } as const
const limiters: Record<SubjectName, SharedLimiter> = {
  exact: createLimiter(rate, { ...rated, store: storeOf('exact'), mode: 'exact' }),
  leased: createLimiter(rate, { ...rated, store: storeOf('leased') }),
  account: createLimiter(ACCOUNT, { ...counted, store: storeOf() }),
  'new keys': createLimiter(ACCOUNT, { ...counted, store: storeOf('new') }),
}
let newKeys = 0
const inNewKeys = { take: () => limiters['new keys'].take(`${process.pid} ${newKeys++}`) }
const loads: Record<SubjectName, FleetLoad> = {
  exact: new FleetLoad(limiters.exact, { keys: KEYS, callers: CALLERS, restMs: REST_MS }),
  leased: new FleetLoad(limiters.leased, { keys: KEYS, callers: CALLERS, restMs: REST_MS }),
  account: new FleetLoad(limiters.account, { keys: KEYS, callers: KEYS.length, restMs: REST_MS }),
  'new keys': new FleetLoad(inNewKeys, { keys: ['new'], callers: 1, restMs: LONGER_REST_MS }),
}
const SUBJECTS = Object.keys(loads) as SubjectName[]
const reported = new Map<SubjectName, number>()

const reporting = setInterval(() => process.send?.(report(false)), REPORT_MS)
process.once('disconnect', () => process.exit())
process.on('message', () => void stop())

async function stop(): Promise<void> {
  await Promise.all(SUBJECTS.map((name) => loads[name].stop()))
  clearInterval(reporting)
  process.send?.(report(true))
}

function report(isLast: boolean): NodeReport {
  const offMs = machineOffMs()
  const takes = SUBJECTS.map((name) => {
    const { takes } = loads[name]
    const news = takes.slice(reported.get(name) ?? 0)
    reported.set(name, takes.length)
    return news.map(({ key, askedMs, answeredMs, decision: { allowed, source } }) => ({
      key,
      askedMs: askedMs + offMs,
      answeredMs: answeredMs + offMs,
      decision: { allowed, source },
    }))
  })
  return {
    isLast,
    takes: Object.fromEntries(SUBJECTS.map((name, i) => [name, takes[i]])) as unknown as NodeReport['takes'],
    errors: SUBJECTS.flatMap((name) => loads[name].errors.map(String)),
    failures: limiters.account.stats().storeFailures,
  }
}

function clientOf(): PostgresClient {
  // With types to fetch, a connection that breaks before it has them ends the process: the driver lets that rejection go.
  if (driver === 'postgres') return postgres(url, { max: CONNECTIONS, connect_timeout: 1, fetch_types: false, onnotice: () => undefined })
  const pool = new pg.Pool({ connectionString: url, max: CONNECTIONS, connectionTimeoutMillis: 1000, query_timeout: 2000 })
  pool.on('error', () => undefined)
  return pool
}

/** Off from the clocks of all others, and of another pace. */
function ownClock(): Clock {
  return { nowMs: () => performance.now() * clock.pace + clock.offMs }
}
