import { type ChildProcess, fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { fixedWindow } from 'sluicegate'
import type { RateSpec } from 'sluicegate-testkit'
import type { RecordedLoad, RecordedTake, Subject } from '../subject.js'

const PROGRAM = fileURLToPath(new URL('./fleet-process.js', import.meta.url))

export const TABLE = 'sluicegate'
export const KEYS = ['user:0', 'user:1', 'user:2'] as const
export const PG_RATE: RateSpec = { limit: 20, windowMs: 1000, burst: 80 }
/** Twice that of the service: what else the machine does is no outage. */
export const PG_TIMEOUT_MS = 500
/** So much that all passes, and so slow that nothing comes back: what is charged can be compared with what passed. */
export const PLENTY = 1_000_000_000
export const ACCOUNT = fixedWindow({ limit: PLENTY, window: '30d', name: 'account' })

/** Of what a process does it reports so often. */
export const REPORT_MS = 100
/** Between two takes of a caller. */
export const REST_MS = 20

export type SubjectName = 'exact' | 'leased' | 'account' | 'new keys'

/** What a process is started with. */
export interface NodeStart {
  readonly url: string
  readonly table: string
  readonly driver: 'pg' | 'postgres'
  readonly clock: { readonly offMs: number; readonly pace: number }
}

/** What a process did since its last report, in milliseconds of the machine's monotonic clock. */
export interface NodeReport {
  readonly isLast: boolean
  readonly takes: Readonly<Record<SubjectName, readonly RecordedTake[]>>
  /** All of them so far. */
  readonly errors: readonly string[]
  /** Calls of the account that failed so far: whether they were charged is unknown. */
  readonly failures: number
}

/** The monotonic clock of the machine, which all processes share, and this process's `performance.now()` are apart by these milliseconds. */
export function machineOffMs(): number {
  return Number(process.hrtime.bigint()) / 1e6 - performance.now()
}

/** The takes of one subject, of all processes. */
class GatheredLoad implements RecordedLoad {
  readonly takes: RecordedTake[] = []
  readonly open = []
  readonly errors: string[]
  readonly stop: () => Promise<void>

  constructor(errors: string[], stop: () => Promise<void>) {
    this.errors = errors
    this.stop = stop
  }

  since(ms: number): readonly RecordedTake[] {
    return this.takes.filter(({ askedMs }) => askedMs >= ms)
  }

  get slowestMs(): number {
    return this.takes.reduce((slowest, { askedMs, answeredMs }) => Math.max(slowest, answeredMs - askedMs), 0)
  }
}

/** Processes that share budgets in one table: through both clients, with clocks minutes apart and of another pace. */
export class Fleet {
  readonly loads: Readonly<Record<SubjectName, GatheredLoad>>
  private readonly server: Pick<NodeStart, 'url' | 'table'>
  private readonly children: ChildProcess[]
  private readonly reports = new Map<ChildProcess, NodeReport>()
  private readonly reportedMs = new Map<ChildProcess, number>()
  private readonly ended = new Map<ChildProcess, Promise<void>>()
  private readonly errors: string[] = []
  private started = 0
  private unreported = 0

  constructor(processes: number, server: Pick<NodeStart, 'url' | 'table'>) {
    const load = (): GatheredLoad => new GatheredLoad(this.errors, () => this.stop())
    this.loads = { exact: load(), leased: load(), account: load(), 'new keys': load() }
    this.server = server
    this.children = Array.from({ length: processes }, () => this.startOne())
  }

  private startOne(): ChildProcess {
    const i = this.started++
    const clock = { offMs: i * 180_000, pace: 1 + (i - 1) * 2e-4 }
    const start: NodeStart = { ...this.server, driver: i % 2 === 0 ? 'pg' : 'postgres', clock }
    const child = fork(PROGRAM, [JSON.stringify(start)], {
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
      // That the store is silent is meant.
      execArgv: ['--no-warnings'],
    })
    const last = this.lastOf(child)
    last.catch(() => undefined)
    this.ended.set(child, last)
    return child
  }

  /** What can be judged by the bound of the rate. */
  get subjects(): Subject[] {
    return (['exact', 'leased'] as const).map((name) => ({
      name,
      bound: PG_RATE,
      processes: this.children.length,
      limiter: { stats: () => this.failures },
      load: this.loads[name],
    }))
  }

  get failures(): number {
    return [...this.reports.values()].reduce((sum, { failures }) => sum + failures, 0)
  }

  /** Takes of the account at most of which nobody knows what became of them: calls that failed, and what killed processes did not report any more. */
  get unknown(): number {
    return this.failures + this.unreported
  }

  /** Kills the first process in the middle of whatever it does, and starts another one. */
  killOne(): void {
    const [child] = this.children
    if (child === undefined) return
    child.kill('SIGKILL')
    this.ended.delete(child)
    // A report was made before it came.
    const silentMs = performance.now() - (this.reportedMs.get(child) ?? 0) + REPORT_MS
    this.unreported += Math.ceil(KEYS.length * (silentMs / REST_MS + 1))
    this.children[0] = this.startOne()
  }

  /** Stops the first process in the middle of whatever it does, until {@link resumeOne}. */
  pauseOne(): void {
    this.children[0]?.kill('SIGSTOP')
  }

  resumeOne(): void {
    this.children[0]?.kill('SIGCONT')
  }

  /** Resolves when every caller has had its last answer. */
  async stop(): Promise<void> {
    for (const child of this.children) if (child.connected) child.send('stop')
    await Promise.all(this.ended.values())
  }

  end(): void {
    for (const child of this.children) child.kill('SIGKILL')
  }

  private lastOf(child: ChildProcess): Promise<void> {
    return new Promise((resolve, reject) => {
      child.once('exit', (code) => reject(new Error(`a process of the fleet ended (${code})`)))
      child.on('message', (report: NodeReport) => {
        const before = this.reports.get(child)?.errors.length ?? 0
        this.reports.set(child, report)
        this.reportedMs.set(child, performance.now())
        this.errors.push(...report.errors.slice(before))
        for (const [name, load] of Object.entries(this.loads)) load.takes.push(...report.takes[name as SubjectName].map(onOwnClock))
        if (report.isLast) resolve()
      })
    })
  }
}

function onOwnClock({ askedMs, answeredMs, ...take }: RecordedTake): RecordedTake {
  const offMs = machineOffMs()
  return { ...take, askedMs: askedMs - offMs, answeredMs: answeredMs - offMs }
}
