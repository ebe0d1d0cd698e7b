import { type ChildProcess, fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import type { Spent } from '../history/sure-excess.js'
import type { LeasedJob, LeasedReport } from './leased-process.js'

const PROGRAM = fileURLToPath(new URL('./leased-process.js', import.meta.url))

/** A process that does a job, once all are ready. */
export interface LeasedWorker {
  readonly child: ChildProcess
  /** Undefined of one that was killed. */
  readonly report: Promise<LeasedReport | undefined>
}

/** Real processes of one machine that share a key; they begin together. */
export async function leasedFleet(jobs: readonly LeasedJob[]): Promise<LeasedWorker[]> {
  const workers = await Promise.all(jobs.map(readyFor))
  for (const { child } of workers) child.send('begin')
  return workers
}

/** The tokens that all of them spent. */
export function spentBy(reports: readonly (LeasedReport | undefined)[]): Spent[] {
  return reports.flatMap((report) =>
    (report?.admissions ?? []).flatMap(([fromUs, toUs, cost]) => Array<Spent>(cost).fill({ fromUs, toUs })),
  )
}

async function readyFor(job: LeasedJob): Promise<LeasedWorker> {
  const { wallClock } = job
  const faked = wallClock && { execPath: 'faketime', execArgv: ['--exclude-monotonic', '-f', wallClock, process.execPath] }
  const child = fork(PROGRAM, ['leased-process'], { stdio: ['ignore', 'inherit', 'inherit', 'ipc'], ...faked })
  const ended = new Promise<undefined>((resolve) => child.once('exit', () => resolve(undefined)))
  const ready = new Promise<unknown>((resolve) => child.once('message', resolve))
  child.send(job)
  if ((await Promise.race([ready, ended])) !== 'ready') throw new Error('a process of the fleet ended before it began')
  const reported = new Promise<LeasedReport>((resolve) => child.once('message', (report) => resolve(report as LeasedReport)))
  return { child, report: Promise.race([reported, ended]) }
}
