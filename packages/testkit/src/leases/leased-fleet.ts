import assert from 'node:assert/strict'
import { type ChildProcess, fork } from 'node:child_process'
import type { TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import type { PolicyEncoding } from '../../../sluicegate/dist/shared/steps/policy-encoding.js'
import { budgetOf, type Spent, surelyOver } from '../history/excess.js'
import type { SinglePolicySpec } from '../oracle/oracle.js'
import { shortOrLong } from '../run-length.js'
import type { LeaseStep, RecordRules } from '../twins/lease-step.js'
import { LogStep } from '../twins/log-step.js'
import { FixedStep, RateStep, SlidingStep } from '../twins/steps.js'
import type { LeasedJob, LeasedReport } from './leased-process.js'

/** How many processes share which policy: fewer in a short run, as each takes a second of the processor to start. */
export const FLEETS: readonly (readonly [number, SinglePolicySpec])[] = [
  [shortOrLong(3, 8), { algorithm: 'token-bucket', limit: 10, windowMs: 1000, burst: 10 }],
  [shortOrLong(2, 4), { algorithm: 'gcra', limit: 500, windowMs: 1000, burst: 200 }],
  [3, { algorithm: 'fixed-window', limit: 100, windowMs: 2000 }],
  [3, { algorithm: 'sliding-window', limit: 100, windowMs: 2000 }],
  [shortOrLong(2, 3), { algorithm: 'sliding-log', limit: 100, windowMs: 2000 }],
]

const FOR_MS = shortOrLong(700, 1500)
const MINUTE_MS = 60_000

/** Jobs for processes whose clocks differ by minutes. */
export function leasedJobs(url: string, count: number, spec: SinglePolicySpec, more: Partial<LeasedJob> = {}): LeasedJob[] {
  return Array.from({ length: count }, (_, i) => ({ url, spec, forMs: FOR_MS, clockOffMs: (i - count / 2) * 3 * MINUTE_MS, ...more }))
}

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

/** Asserts that what all of them spent is within the budget for sure. @returns what they spent. */
export function assertWithin(spec: SinglePolicySpec, reports: readonly (LeasedReport | undefined)[], t: TestContext): Spent[] {
  const spent = spentBy(reports)
  t.diagnostic(`${spent.length} passed, ${reports.reduce((sum, report) => sum + (report?.storeCalls ?? 0), 0)} calls`)
  assert.equal(surelyOver(spent, budgetOf(spec)), undefined)
  assert.ok(spent.length > 0)
  return spent
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

/** @param numbers what `name` says of them; of others in a mutant. */
export function leaseStepOf({ name }: Pick<PolicyEncoding, 'name'>, numbers: readonly number[], rules: RecordRules): LeaseStep {
  switch (name) {
    case 'rate':
      return new RateStep(numbers, rules)
    case 'fixed-window':
      return new FixedStep(numbers)
    case 'sliding-window':
      return new SlidingStep(numbers)
    case 'sliding-log':
      return new LogStep(numbers)
    default:
      throw new RangeError(`${name} is not leased`)
  }
}
