import { setTimeout as after } from 'node:timers/promises'
import pg from 'pg'
import { createLimiter } from 'sluicegate'
import { postgres, postgresTable } from 'sluicegate/postgres'
import { FaultProxy, PgBouncerProcess, PostgresProcess, SmallDisk, until, worstSureExcess } from 'sluicegate-testkit'
import { allowedShare, isWithin } from './failover.js'
import { ACCOUNT, KEYS, PG_RATE, PG_TIMEOUT_MS, PLENTY, postgresFleet, TABLE } from './fleet.js'
import { type Faulted, POSTGRES_FAULTS, type PostgresFault } from './postgres-faults.js'
import type { RecordedTake, Subject } from './recorded.js'
import { admittedByKey, served } from './subject.js'
import { underFaults } from './under-faults.js'
import { stateOfSubjects } from './watched.js'

const PROCESSES = 3
/** Connections of PgBouncer to the server. */
const POOLED = 12
/** A lease may be spent for so long, also after the server forgot it. */
const LEASE_MS = 100
const QUIET_MS = 1000

/** What became of a fleet under one fault. */
export type PostgresFaultReport = Awaited<ReturnType<typeof postgresFault>>

/** Makes one fault again and again, while the processes of a fleet call all the time. */
export async function postgresFault(fault: PostgresFault, times: number, progress: (line: string) => void) {
  using disk = fault.diskMiB === undefined ? undefined : new SmallDisk(fault.diskMiB)
  await using server = await PostgresProcess.start({ ...fault.options, ...(disk && { under: disk.folder }) })
  await server.ask(postgresTable({ table: TABLE, logged: fault.isLogged }))
  await using proxy = await FaultProxy.before(server)
  await using bouncer = fault.isPooled ? await PgBouncerProcess.before(server, POOLED) : undefined
  const fleet = postgresFleet(fault.processes ?? PROCESSES, bouncer?.url ?? server.urlAt(proxy.port), fault.formOf)
  const faulted: Faulted = { server, proxy, disk, bouncer, fleet }
  const subjects = fleet.subjects(['exact', 'leased'], PG_RATE)
  let forgotMs = 0
  let msOut = 0
  try {
    const {
      recoveryMs: _,
      seconds,
      subjects: reports,
    } = await underFaults({
      name: fault.name,
      times,
      subjects,
      keys: KEYS,
      isServed: isPassed,
      state: async () => stateOfSubjects(subjects),
      progress,
      async make(_round, watched) {
        await watched('every key is spent', until('denied by the store', served(subjects, KEYS, performance.now(), isDenied)))
        const fromMs = performance.now()
        await watched(`${fault.name} is over`, fault.make(faulted))
        const overMs = performance.now()
        const repair = async (): Promise<void> => {
          msOut += performance.now() - fromMs
        }
        if (fault.forgets) forgotMs = overMs
        return { fromMs: overMs, sinceMs: overMs, repair }
      },
      stop: async () => {
        await after(QUIET_MS)
        await fleet.stop()
      },
    })
    for (const error of new Set(fleet.loads.exact.errors.map(String))) progress(`error: ${error}`)
    const account = await accountOf(fleet, faulted.server, forgotMs)
    const { limit, windowMs, burst } = PG_RATE
    const { takes } = fleet.loads['new keys']
    return {
      fault: fault.name,
      times,
      /** Tokens by which a key may be over the policy. */
      allowedOver: Math.ceil(
        (fault.forgets ? times * (burst + (limit / windowMs) * LEASE_MS) : 0) + (limit / windowMs) * 2 * PG_TIMEOUT_MS,
      ),
      allowedShare: allowedShare(subjects[0] as Subject, seconds, msOut / 1000),
      /** Beside it the tokens over the policy in the worst interval, counting only those that were surely spent within it. */
      subjects: reports.map((report, i) => ({ ...report, surelyOver: surelyOver(subjects[i] as Subject) })),
      ...account,
      /** Of takes of keys that were new: decided without the store. */
      newKeys: { takes: takes.length, outageDecisions: takes.filter(({ decision }) => decision.source === 'outage').length },
    }
  } finally {
    fleet.end()
    if (faulted.server !== server) await faulted.server.stop()
  }
}

/** By the store. */
const isPassed = ({ allowed, source }: RecordedTake['decision']): boolean => allowed && source !== 'outage'
const isDenied = ({ allowed, source }: RecordedTake['decision']): boolean => !allowed && source !== 'outage'

function surelyOver({ bound, load }: Subject): number {
  const byStore = load.takes.filter(({ decision }) => decision.source !== 'outage')
  const worst = admittedByKey(byStore).map((takes) =>
    worstSureExcess(
      bound,
      takes.map(({ askedMs, answeredMs }) => ({ fromUs: Math.floor(askedMs * 1000), toUs: Math.ceil(answeredMs * 1000) })),
    ),
  )
  return Number(Math.max(0, ...worst).toFixed(1))
}

/** What the store has charged of the account, against what passed since it forgot, and what passed or failed in all. */
async function accountOf(fleet: ReturnType<typeof postgresFleet>, server: PostgresProcess, forgotMs: number) {
  const client = new pg.Client({ connectionString: server.url })
  await client.connect()
  const limiter = createLimiter(ACCOUNT, { store: postgres(client, { table: TABLE }), mode: 'exact', outage: 'closed', timeout: 10_000 })
  const left = await Promise.all(KEYS.map((key) => limiter.peek(key)))
  limiter.close()
  await client.end()
  if (left.some(({ source }) => source !== 'store')) throw new Error('the store does not tell what it charged')
  const charges = left.reduce((sum, { remaining }) => sum + PLENTY - remaining, 0)
  const passed = fleet.loads.account.takes.filter(({ decision }) => decision.allowed)
  const least = passed.filter(({ askedMs }) => askedMs >= forgotMs).length
  // Beside what passed, what failed without an answer and what was not reported: none too many, none too few.
  return { charges, chargedWrongly: Math.max(0, least - charges, charges - passed.length - fleet.unknown) }
}

/** What became of fleets over PostgreSQL, under each fault. */
export interface PostgresChaosReport {
  readonly date: string
  /** Whether all was as stated. */
  readonly isWithin: boolean
  readonly faults: readonly PostgresFaultReport[]
}

/** Each fault again and again, on a server for each fault. @param times each is made */
export async function postgresChaos(times: number, progress: (line: string) => void = () => undefined): Promise<PostgresChaosReport> {
  const faults: PostgresFaultReport[] = []
  for (const fault of POSTGRES_FAULTS) faults.push(await postgresFault(fault, times, progress))
  return { date: new Date().toISOString().slice(0, 10), isWithin: faults.every(isAsStated), faults }
}

/** No error for callers, no more than the bound, nothing charged twice or lost. */
export function isAsStated(report: PostgresFaultReport): boolean {
  return isWithin(report) && report.chargedWrongly === 0
}
