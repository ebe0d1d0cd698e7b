import { type ChildProcess, fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { fixedWindow } from 'sluicegate'
import type { RateSpec } from 'sluicegate-testkit'
import type { RecordedLoad, RecordedTake, Subject } from './recorded.js'

const PROGRAM = fileURLToPath(new URL('./fleet-process.js', import.meta.url))

export const TABLE = 'sluicegate'
export const KEYS = ['user:0', 'user:1', 'user:2'] as const
export const PG_RATE: RateSpec = { limit: 20, windowMs: 1000, burst: 80 }
/** Twice that of the service: what else the machine does is no outage. */
export const PG_TIMEOUT_MS = 500
/** So much that all passes, and so slow that nothing comes back: what is charged can be compared with what passed. */
export const PLENTY = 1_000_000_000
export const ACCOUNT = fixedWindow({ limit: PLENTY, window: '30d', name: 'account' })

/** What each process decides by itself in an outage, of a policy. */
export const LOCAL_SHARE = 0.1

/** Of what a process does it reports so often. */
export const REPORT_MS = 100
/** Between two takes of a caller. */
export const REST_MS = 20

/** How a process changes rows: the server computes them, or it swaps them, as processes of before do. */
export type RowForm = 'steps' | 'swaps'

/** What a process is started with: its store, and the limiters over it. */
export type NodeStart =
  | {
      readonly store: 'postgres'
      readonly url: string
      readonly driver: 'pg' | 'postgres'
      readonly clock: { readonly offMs: number; readonly pace: number }
      readonly form: RowForm
    }
  | { readonly store: 'redis'; readonly url: string; readonly policy: RateSpec }

/** What a process did since its last report, in milliseconds of the machine's monotonic clock. */
export interface NodeReport {
  readonly isLast: boolean
  /** By the name of the limiter. */
  readonly takes: Readonly<Record<string, readonly RecordedTake[]>>
  /** All of them so far. */
  readonly errors: readonly string[]
  /** Calls of the account that failed so far: whether they were charged is unknown. */
  readonly failures: number
  /** Processes that it knows of, itself among them. */
  readonly nodes: number
}

/** The monotonic clock of the machine, which all processes share, and this process's `performance.now()` are apart by these milliseconds. */
export function machineOffMs(): number {
  return Number(process.hrtime.bigint()) / 1e6 - performance.now()
}

/** The takes of one limiter, of all processes. */
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

/** Processes that share budgets in one table: through both clients, with clocks minutes apart and of another pace. @param formOf the process that is started so many after the first */
export function postgresFleet(
  processes: number,
  url: string,
  formOf: (i: number) => RowForm = () => 'steps',
): Fleet<'exact' | 'leased' | 'account' | 'new keys'> {
  const startOf = (i: number): NodeStart => {
    const clock = { offMs: i * 180_000, pace: 1 + (i - 1) * 2e-4 }
    return { store: 'postgres', url, driver: i % 2 === 0 ? 'pg' : 'postgres', clock, form: formOf(i) }
  }
  return new Fleet(processes, startOf, ['exact', 'leased', 'account', 'new keys'])
}

/** Processes whose limiters take all the time, and all that they report. */
export class Fleet<Name extends string = string> {
  readonly loads: Readonly<Record<Name, GatheredLoad>>
  readonly errors: string[] = []
  /** The last report of each. */
  readonly reports = new Map<ChildProcess, NodeReport>()
  readonly children: ChildProcess[]
  private readonly startOf: (i: number) => NodeStart
  private readonly onReport: (child: ChildProcess, report: NodeReport) => void
  private readonly reportedMs = new Map<ChildProcess, number>()
  private readonly ended = new Map<ChildProcess, Promise<void>>()
  private started = 0
  private unreported = 0

  constructor(
    processes: number,
    startOf: (i: number) => NodeStart,
    names: readonly Name[],
    onReport: (child: ChildProcess, report: NodeReport) => void = () => undefined,
  ) {
    const loads = names.map((name) => [name, new GatheredLoad(this.errors, () => this.stop())])
    this.loads = Object.fromEntries(loads) as Record<Name, GatheredLoad>
    this.startOf = startOf
    this.onReport = onReport
    this.children = Array.from({ length: processes }, () => this.startOne())
  }

  /** What can be judged by the bound of a rate. */
  subjects(names: readonly Name[], bound: RateSpec): Subject[] {
    return names.map((name) => ({
      name,
      bound,
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

  /** One more process. */
  join(): ChildProcess {
    const child = this.startOne()
    this.children.push(child)
    return child
  }

  /** Kills the first process in the middle of whatever it does. */
  killOne(): void {
    const child = this.children.shift()
    if (child === undefined) return
    child.kill('SIGKILL')
    this.ended.delete(child)
    // A report was made before it came.
    const silentMs = performance.now() - (this.reportedMs.get(child) ?? 0) + REPORT_MS
    this.unreported += Math.ceil(KEYS.length * (silentMs / REST_MS + 1))
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

  private startOne(): ChildProcess {
    const child = fork(PROGRAM, [JSON.stringify(this.startOf(this.started++))], {
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
      // That the store is silent is meant.
      execArgv: ['--no-warnings'],
    })
    const last = this.lastOf(child)
    last.catch(() => undefined)
    this.ended.set(child, last)
    return child
  }

  private lastOf(child: ChildProcess): Promise<void> {
    return new Promise((resolve, reject) => {
      child.once('exit', (code) => reject(new Error(`a process of the fleet ended (${code})`)))
      child.on('message', (report: NodeReport) => {
        const before = this.reports.get(child)?.errors.length ?? 0
        this.reports.set(child, report)
        this.reportedMs.set(child, performance.now())
        this.errors.push(...report.errors.slice(before))
        for (const [name, load] of Object.entries<GatheredLoad>(this.loads)) load.takes.push(...(report.takes[name] ?? []).map(onOwnClock))
        this.onReport(child, report)
        if (report.isLast) resolve()
      })
    })
  }
}

function onOwnClock({ askedMs, answeredMs, ...take }: RecordedTake): RecordedTake {
  const offMs = machineOffMs()
  return { ...take, askedMs: askedMs - offMs, answeredMs: answeredMs - offMs }
}
