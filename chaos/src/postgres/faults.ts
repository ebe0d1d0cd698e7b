import { setTimeout as after } from 'node:timers/promises'
import { type FaultProxy, type PostgresProcess, type PostgresProcessOptions, type SmallDisk, until } from 'sluicegate-testkit'

/** What a fault works on. */
export interface Faulted {
  readonly server: PostgresProcess
  readonly proxy: FaultProxy
  readonly disk: SmallDisk | undefined
}

/** One thing that goes wrong, and what it may cost. */
export interface PostgresFault {
  readonly name: string
  /** Whether the table is written to the log of the server. */
  readonly isLogged: boolean
  /** Whether a key may admit its burst once more, for each time. */
  readonly forgets: boolean
  readonly options?: PostgresProcessOptions
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
