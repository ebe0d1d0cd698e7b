import { createLimiter } from '../../../sluicegate/dist/index.js'
import { allOf } from '../../../sluicegate/dist/policy/all-of.js'
import type { Policy } from '../../../sluicegate/dist/policy/policy.js'
import { postgres } from '../../../sluicegate/dist/postgres/postgres.js'
import { scriptedStore } from '../../../sluicegate/dist/redis/redis.js'
import { RedisKeys } from '../../../sluicegate/dist/redis/redis-keys.js'
import { RedisScripts } from '../../../sluicegate/dist/redis/redis-scripts.js'
import { nodeRedisRunner } from '../../../sluicegate/dist/redis/runners/node-redis.js'
import type { SharedLimiter } from '../../../sluicegate/dist/shared/shared-limiter.js'
import type { Clock } from '../../../sluicegate/dist/time/clock.js'
import { policyOf } from '../kit.js'
import type { SinglePolicySpec } from '../oracle/oracle.js'
import { machineUs, type SeenTake, saturated, serverClock } from '../redis/saturation.js'

/** What a process of a fleet does, for a while. */
export interface LeasedJob {
  /** Of Redis, or of PostgreSQL with its table. */
  readonly url: string
  readonly spec: SinglePolicySpec
  /** A second policy for each request, and a key for each of both. */
  readonly also?: SinglePolicySpec
  readonly keys?: readonly [string, string]
  readonly horizonMs?: number
  readonly cost?: number
  /** Requests a second, evenly; without it 64 a millisecond. */
  readonly perSecond?: number
  readonly forMs: number
  /** Requests at the very start, one after another, after which it asks for nothing until then. */
  readonly first?: number
  readonly quietUntilMs?: number
  /** How far its clocks are off. */
  readonly clockOffMs?: number
  /** How far its wall clock is off for all of its system calls, such as `+3m`. */
  readonly wallClock?: string
  readonly mode?: 'exact' | 'leased'
  /** One caller who asks without a rest, judged by the clock of the server or of this machine. */
  readonly saturates?: 'by the server' | 'by the machine'
}

/** What it reports in the end. Times are of the machine's monotonic clock, in microseconds. */
export interface LeasedReport {
  /** When each passed: a leased token as it was spent, a take of the store between its question and its answer. */
  readonly admissions: readonly (readonly [fromUs: number, toUs: number, cost: number])[]
  readonly requests: number
  readonly storeCalls: number
  readonly outageDecisions: number
  /** Of one that saturates. */
  readonly seen: readonly SeenTake[]
  /** What its wall clock said when it was done. */
  readonly wallMs: number
}

const AT_ONCE = 64
const KEY = 'the key'

// A separate process, which loads one client library alone: waits for a job, sends "ready", begins on command, and reports.
if (process.argv[2] === 'leased-process') process.once('message', (job: LeasedJob) => void reported(job))

async function reported(job: LeasedJob): Promise<void> {
  const report = await worked(job)
  process.send?.(report, () => process.disconnect())
}

async function worked(job: LeasedJob): Promise<LeasedReport> {
  const { clockOffMs = 0 } = job
  // Nothing may depend on what time it is here.
  const dateNow = Date.now
  Date.now = () => dateNow() + clockOffMs
  const clock = new ReadClock(clockOffMs)
  const { saturates, forMs } = job
  const { limiter, serverUs, end } = await (job.url.startsWith('postgres:') ? overPostgres : overRedis)(job, clock)
  const begin = new Promise((resolve) => process.once('message', resolve))
  process.send?.('ready')
  await begin
  const nowUs = saturates === 'by the server' ? serverUs : machineUs
  const seen = saturates === undefined ? [] : await saturated({ limiter, callers: 1, forMs, nowUs })
  const { admissions, requests } = saturates === undefined ? await asked(limiter, clock, job) : { admissions: [], requests: seen.length }
  const { storeCalls, outageDecisions } = limiter.stats()
  await end()
  return { admissions, requests, storeCalls, outageDecisions, seen, wallMs: Date.now() }
}

/** A limiter over a server, the clock of that, and how to leave it. */
interface Joined {
  readonly limiter: SharedLimiter
  readonly serverUs: () => number | Promise<number>
  end(): unknown
}

function optionsIn({ horizonMs = 50, mode }: LeasedJob) {
  return { ...(mode && { mode }), lease: horizonMs, outage: 'closed', timeout: 10_000 } as const
}

async function overRedis(job: LeasedJob, clock: Clock): Promise<Joined> {
  const { createClient } = await import('@redis/client')
  const client = createClient({ url: job.url })
  await client.connect()
  const store = new RedisScripts(nodeRedisRunner(client), new RedisKeys('leased'))
  const limiter = createLimiter(policyIn(job), { store: scriptedStore(store), ...optionsIn(job), clock })
  return { limiter, serverUs: serverClock(client), end: () => client.destroy() }
}

async function overPostgres(job: LeasedJob, clock: Clock): Promise<Joined> {
  const { default: pg } = await import('pg')
  const client = new pg.Pool({ connectionString: job.url, max: 4 })
  const limiter = createLimiter(policyIn(job), { store: postgres(client), ...optionsIn(job), clock })
  const serverUs = async (): Promise<number> => {
    const { rows } = await client.query('SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::float8 AS us')
    return rows[0].us
  }
  return { limiter, serverUs, end: () => client.end() }
}

function policyIn({ spec, also }: LeasedJob): Policy {
  const first = policyOf(spec, { name: 'leased' })
  return also === undefined ? first : allOf([first, policyOf(also, { name: 'also' })])
}

async function asked(limiter: SharedLimiter, clock: ReadClock, job: LeasedJob) {
  const { cost = 1, perSecond, forMs, first = 0, quietUntilMs = 0, keys = KEY } = job
  const admissions: [number, number, number][] = []
  const startMs = performance.now()
  let requests = 0
  const ask = async (times: number): Promise<void> => {
    for (let i = 0; i < times; i++) {
      requests++
      const sentUs = Math.floor(machineUs())
      const { allowed, source } = await limiter.take(keys, cost)
      const { readUs } = clock
      if (allowed) admissions.push([source === 'store' ? sentUs : readUs, readUs, cost])
    }
  }
  await ask(first)
  for (let lateMs = 0; lateMs < forMs; lateMs = performance.now() - startMs) {
    const due = perSecond === undefined ? AT_ONCE : Math.floor((lateMs * perSecond) / 1000) - requests
    if (lateMs >= quietUntilMs) await ask(due)
    await new Promise((resolve) => setTimeout(resolve, 1))
  }
  return { admissions, requests }
}

/** The machine's monotonic clock, off by a constant, which says when it was last read: when the last decision was made. */
class ReadClock implements Clock {
  readUs = 0
  private readonly offMs: number

  constructor(offMs: number) {
    this.offMs = offMs
  }

  nowMs(): number {
    const ms = Number(process.hrtime.bigint()) / 1e6
    this.readUs = Math.round(ms * 1000)
    return ms + this.offMs
  }
}
