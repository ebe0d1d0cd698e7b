import type pg from 'pg'
import type { SharedOptions } from '../../../sluicegate/dist/index.js'
import { createLimiter } from '../../../sluicegate/dist/index.js'
import type { Policy } from '../../../sluicegate/dist/policy/policy.js'
import { postgresStore } from '../../../sluicegate/dist/postgres/postgres-store.js'
import type { SharedLimiter } from '../../../sluicegate/dist/shared/shared-limiter.js'
import { casStoreOf } from '../../../sluicegate/dist/store/cas.js'
import { type ManualClock, manualClock } from '../../../sluicegate/dist/time/clock.js'

/** How statements read the server's clock, `NOW` in `statements.ts`. */
const NOW = '(extract(epoch FROM clock_timestamp()) * 1000000)::bigint'
const TIMEOUT_MS = 60_000
/** Their clocks are one: they do not drift apart. */
const NO_DRIFT = Number.POSITIVE_INFINITY

/** A client of `pg` whose statements run at times that are given: every statement at the clock's time, as it is when it is sent. */
class GivenTimeClient {
  /** Statements without an answer so far. */
  underway = 0
  private readonly pool: pg.Pool
  private readonly clock: ManualClock

  constructor(pool: pg.Pool, clock: ManualClock) {
    this.pool = pool
    this.clock = clock
  }

  async query({ text, values }: { readonly text: string; readonly values: unknown[] }) {
    this.underway++
    try {
      return await this.pool.query({ text: text.replaceAll(NOW, `${Math.round(this.clock.nowMs() * 1000)}::bigint`), values })
    } finally {
      this.underway--
    }
  }

  connect(): never {
    throw new Error('a client is connected already')
  }
}

/** A limiter, and how to set its time and that of its statements. */
export interface GivenTimeLimiter {
  readonly limiter: SharedLimiter
  set(ms: number): void
  /** Whether a statement has no answer so far. */
  isBusy(): boolean
}

/** A limiter over a table of PostgreSQL, at given times. */
export function limiterAtGivenTimes(
  pool: pg.Pool,
  policy: Policy,
  { prefix = 'sluicegate', ...options }: Omit<SharedOptions, 'store' | 'clock'> & { readonly prefix?: string } = {},
  table = 'sluicegate',
  clock = manualClock(0),
): GivenTimeLimiter {
  const client = new GivenTimeClient(pool, clock)
  const store = casStoreOf(postgresStore({ client, table }), { prefix }, NO_DRIFT)
  const limiter = createLimiter(policy, { outage: 'closed', timeout: TIMEOUT_MS, ...options, store, clock })
  return { limiter, set: (ms) => clock.set(ms), isBusy: () => client.underway > 0 }
}
