import { setTimeout as after } from 'node:timers/promises'
import pg from 'pg'
import { postgresTable } from 'sluicegate/postgres'
import {
  type FaultProxy,
  type PgBouncerProcess,
  PostgresProcess,
  type PostgresProcessOptions,
  type SmallDisk,
  until,
} from 'sluicegate-testkit'
import { type Fleet, type RowForm, TABLE } from './fleet.js'

/** What a fault works on. */
export interface Faulted {
  /** The primary; another one after a failover. */
  server: PostgresProcess
  readonly proxy: FaultProxy
  readonly disk: SmallDisk | undefined
  readonly bouncer: PgBouncerProcess | undefined
  readonly fleet: Pick<Fleet, 'killOne' | 'join' | 'pauseOne' | 'resumeOne'>
}

/** One thing that goes wrong, and what it may cost. */
export interface PostgresFault {
  readonly name: string
  /** Whether the table is written to the log of the server. */
  readonly isLogged: boolean
  /** Whether a key may admit its burst once more, for each time. */
  readonly forgets: boolean
  readonly options?: PostgresProcessOptions
  /** Processes of the fleet, default 3. */
  readonly processes?: number
  /** How each process changes rows, default by steps. */
  readonly formOf?: (i: number) => RowForm
  /** Whether the fleet connects through PgBouncer, in transaction mode. */
  readonly isPooled?: boolean
  /** The server has a small disk for itself, of this size. */
  readonly diskMiB?: number
  /** Makes it and ends it. */
  make(faulted: Faulted): Promise<void>
}

/** Long enough for circuits to open, and for calls to be given up. */
const HOLD_MS = 1500
const STEP_S = 3
/** Of replies, each with its connection. */
const LOST_SHARE = 0.03
const LOSING_MS = 4000
const DISK_MIB = 160
/** Some of the table's last page may be free. */
const FULL_MS = 3000
/** Files of the log that are kept for use again. */
const MOST_FILES = 50
const SWITCH_MS = 100
const ALTERATIONS = 5
/** Processes that are replaced one after another. */
const ROLLED = 4

const kill = async ({ server }: Faulted): Promise<void> => {
  await server.kill()
  await after(HOLD_MS / 3)
  await server.start()
}

const fullDisk = async ({ disk }: Faulted): Promise<void> => {
  disk?.fill()
  await after(FULL_MS)
  disk?.free()
}

/** The server needs another file for its log and cannot make it: all its connections end, and it starts again by itself or ends. */
const fullLog = async ({ server, disk }: Faulted): Promise<void> => {
  disk?.fill()
  let hasFailed = false
  for (let files = 0; files < MOST_FILES && !hasFailed; files++) {
    await server.ask('SELECT pg_switch_wal()').catch(() => {
      hasFailed = true
    })
    await after(SWITCH_MS)
  }
  if (!hasFailed) throw new Error('the server goes on with a full disk')
  await after(FULL_MS)
  disk?.free()
  await until('the server answers', async () => {
    if (!server.isRunning) await server.start()
    return server.ask('SELECT').then(
      () => true,
      () => false,
    )
  })
}

/** A session that forgot its COMMIT has all rows. */
const lockedRows = async ({ server }: Faulted): Promise<void> => {
  const session = new pg.Client({ connectionString: server.url })
  await session.connect()
  await session.query('BEGIN')
  await session.query(`SELECT FROM ${TABLE} FOR UPDATE`)
  await after(HOLD_MS)
  await session.query('ROLLBACK')
  await session.end()
}

/** Statements that were prepared for the table as it was are planned anew, or refused; all of them wait while it is written anew. */
const altered = async ({ server }: Faulted): Promise<void> => {
  for (let time = 0; time < ALTERATIONS; time++) {
    await server.ask(`ALTER TABLE ${TABLE} ADD COLUMN chaos text`)
    await server.ask(`REINDEX TABLE ${TABLE}`)
    await server.ask(`ALTER TABLE ${TABLE} SET LOGGED`)
    await after(HOLD_MS / ALTERATIONS / 2)
    await server.ask(`ALTER TABLE ${TABLE} DROP COLUMN chaos`)
    await server.ask(`VACUUM FULL ${TABLE}`)
    await server.ask(`ALTER TABLE ${TABLE} SET UNLOGGED`)
    await after(HOLD_MS / ALTERATIONS / 2)
  }
}

/** A standby that has all that was answered takes over. */
const failover = async (faulted: Faulted): Promise<void> => {
  const { server, proxy } = faulted
  const standby = await PostgresProcess.start({ standbyOf: server })
  await server.ask("ALTER SYSTEM SET synchronous_standby_names = '*'")
  await server.ask('SELECT pg_reload_conf()')
  await until('the standby is synchronous', async () => {
    const [row] = await server.ask<{ n: number }>("SELECT count(*)::int AS n FROM pg_stat_replication WHERE sync_state = 'sync'")
    return row?.n === 1
  })
  await after(HOLD_MS / 3)
  await server.stop()
  await after(HOLD_MS / 3)
  await standby.promote()
  proxy.lead(standby)
  faulted.server = standby
}

export const POSTGRES_FAULTS: readonly PostgresFault[] = [
  { name: 'kill -9', isLogged: false, forgets: true, make: kill },
  { name: 'kill -9, logged', isLogged: true, forgets: false, make: kill },
  {
    name: 'fast restart',
    isLogged: false,
    forgets: false,
    make: async ({ server }) => {
      await server.shutDown()
      await server.start()
    },
  },
  {
    name: 'pause',
    isLogged: false,
    forgets: false,
    make: async ({ server }) => {
      server.pause()
      await after(HOLD_MS)
      server.resume()
    },
  },
  { name: 'locked rows', isLogged: false, forgets: false, make: lockedRows },
  { name: 'altered table', isLogged: false, forgets: false, make: altered },
  {
    name: 'dropped table, made again',
    isLogged: false,
    forgets: true,
    make: async ({ server }) => {
      await server.ask(`DROP TABLE ${TABLE}`)
      await after(HOLD_MS / 3)
      await server.ask(postgresTable({ table: TABLE }))
    },
  },
  {
    name: 'a rolling change from swaps to steps, and back, through PgBouncer',
    isLogged: false,
    forgets: false,
    isPooled: true,
    processes: 8,
    formOf: (i) => (Math.floor(i / 4) % 2 === 0 ? 'swaps' : 'steps'),
    make: async ({ fleet }) => {
      for (let i = 0; i < ROLLED; i++) {
        fleet.killOne()
        fleet.join()
        await after(HOLD_MS / ROLLED)
      }
    },
  },
  { name: 'failover to a synchronous standby, logged', isLogged: true, forgets: false, make: failover },
  {
    name: 'PgBouncer, kill -9',
    isLogged: false,
    forgets: false,
    isPooled: true,
    processes: 8,
    make: async ({ bouncer }) => {
      await bouncer?.kill()
      await after(HOLD_MS / 3)
      await bouncer?.start()
    },
  },
  {
    name: 'PgBouncer, pause',
    isLogged: false,
    forgets: false,
    isPooled: true,
    processes: 8,
    make: async ({ bouncer }) => {
      bouncer?.pause()
      await after(HOLD_MS)
      bouncer?.resume()
    },
  },
  { name: 'kill -9 behind PgBouncer, logged', isLogged: true, forgets: false, isPooled: true, make: kill },
  {
    name: 'a process of the fleet pauses, through PgBouncer',
    isLogged: false,
    forgets: false,
    isPooled: true,
    processes: 8,
    make: async ({ fleet }) => {
      fleet.pauseOne()
      await after(HOLD_MS)
      fleet.resumeOne()
    },
  },
  {
    name: 'a process of the fleet is killed, and another starts',
    isLogged: false,
    forgets: false,
    processes: 8,
    make: async ({ fleet }) => {
      fleet.killOne()
      fleet.join()
      await after(HOLD_MS)
    },
  },
  { name: 'full disk', isLogged: false, forgets: false, diskMiB: DISK_MIB, make: fullDisk },
  {
    name: 'no room for the log, logged',
    isLogged: true,
    forgets: false,
    diskMiB: DISK_MIB,
    options: { initdb: ['--wal-segsize=1'], settings: { min_wal_size: '2MB', max_wal_size: '64MB' } },
    make: fullLog,
  },
  {
    name: 'lost replies',
    isLogged: false,
    forgets: false,
    make: async ({ proxy }) => {
      proxy.set({ kind: 'latency', delayMs: 0, lostShare: LOST_SHARE })
      await after(LOSING_MS)
      proxy.set({ kind: 'none' })
    },
  },
  {
    name: `server's clock steps by ${STEP_S} s, forward and back`,
    isLogged: false,
    forgets: true,
    options: { hasMovableClock: true },
    make: async ({ server }) => {
      server.moveClock(STEP_S)
      await after(HOLD_MS)
      server.moveClock(0)
    },
  },
]
