import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { type Summary, summaryOf } from 'sluicegate-testkit/samples.js'
import type { ContenderName } from './contenders.js'
import type { Job, Repeat } from './job.js'
import { LineProcess } from './line-process.js'
import { coresLeftBy, disturbed, quiet, usage } from './machine.js'

/** What one subject did in all rounds of one run. */
export interface Measurement {
  readonly subject: string
  readonly ns: Summary
  readonly grossNs: Summary
  /** One a round; the same round of another subject was measured right beside it. */
  readonly samples: readonly number[]
  readonly takes: number
  readonly allowed: number
  /** Repeats that were thrown away because others used the processors meanwhile, or kept too many threads off them. */
  readonly voided: number
}

/** A subject of a measurement: a name for the report and how to start its process. */
export interface Subject {
  readonly name: string
  readonly start: () => Promise<LineProcess>
  /** What every take must answer; a subject that answers otherwise measured something else. Of `any` the measurement tells what it was. */
  readonly outcome: 'allow' | 'deny' | 'mostly allow'
  /** Threads it runs on, default 1: the other cores may be used by others. */
  readonly threads?: number
}

/** How long and how often; from the command line. */
export interface Effort {
  /** Repeats of each subject, shared out over its lives. */
  readonly rounds: number
  /** How often each subject starts again: the compiler is not equally lucky each time. */
  readonly lives: number
  readonly repeatMs: number
  /** How long to wait for quiet, and to repeat what others disturbed, over all repeats of a table; 0 takes every repeat as it is. */
  readonly patienceMs: number
}

const SUBJECT = fileURLToPath(new URL('./subject.js', import.meta.url))
const SETTLE_MS = 50
/** Threads that lost their processor decide by an old reading, and may find the bucket of that time empty. */
const MOSTLY = 0.99
/** Repeats in a row in which that happened to too many. */
const MOST_MISSES = 10

/** A contender of this process' kind, with the rest of its job. */
export function subject(contender: ContenderName, effort: Effort, job: Partial<Job> & { name?: string } = {}): Subject {
  const { name = contender, ...rest } = job
  const whole: Job = { contender, keys: 1, takesPerTurn: 0, outcome: 'allow', freshKeys: false, repeatMs: effort.repeatMs, ...rest }
  return { name, outcome: whole.outcome, start: () => startNode(name, SUBJECT, whole) }
}

/** A script of ours that speaks in lines, given one argument in JSON. */
export function startNode(what: string, script: string, argument: unknown, flags: readonly string[] = []): Promise<LineProcess> {
  return LineProcess.start(what, process.execPath, [...flags, script, JSON.stringify(argument)])
}

/** A repeat, and how many it took to get an undisturbed one. */
interface Tried extends Repeat {
  readonly tries: number
}

/**
 * Measures all subjects in turn, round after round, each in its own process, which rests while the others run. Every other
 * round goes backwards, so that no contender always follows the same neighbour.
 */
export async function measure(subjects: readonly Subject[], effort: Effort): Promise<Measurement[]> {
  const repeats: Tried[][] = subjects.map(() => [])
  const patience = { leftMs: effort.patienceMs }
  for (let life = 0; life < effort.lives; life++) {
    const processes: LineProcess[] = []
    for (const { start } of subjects) processes.push(await start())
    for (let round = 0; round < effort.rounds / effort.lives; round++) {
      const order = [...subjects.keys()]
      if (round % 2 === 1) order.reverse()
      for (const index of order) {
        repeats[index]?.push(await fairRepeat(subjects[index] as Subject, processes[index] as LineProcess, patience))
      }
    }
    await Promise.all(processes.map((process) => process.stop()))
  }
  return subjects.map(({ name }, index) => measurement(name, repeats[index] ?? []))
}

/** One repeat that measured what was to be measured. */
async function fairRepeat(subject: Subject, process: LineProcess, patience: { leftMs: number }): Promise<Tried> {
  for (let misses = 0; ; misses++) {
    const repeat = await quietRepeat(subject, process, patience)
    if (hasOutcome(subject, repeat)) return { ...repeat, tries: repeat.tries + misses }
    if (subject.outcome !== 'mostly allow' || misses === MOST_MISSES) {
      throw new Error(`${subject.name}: ${repeat.allowed} of ${repeat.takes} takes were allowed: not what was to be measured`)
    }
  }
}

/** One repeat during which others kept to the cores that the subject leaves them, as far as patience goes. */
async function quietRepeat({ threads = 1 }: Subject, process: LineProcess, patience: { leftMs: number }): Promise<Tried> {
  const left = coresLeftBy(threads)
  for (let tries = 1; ; tries++) {
    const fromMs = performance.now()
    await (patience.leftMs > 0 ? quiet(patience.leftMs, left) : sleep(SETTLE_MS))
    const before = usage(process.pid)
    patience.leftMs -= before.atMs - fromMs - SETTLE_MS
    const repeat = (await process.ask('run')) as Repeat
    const after = usage(process.pid)
    if (patience.leftMs <= 0 || !disturbed(before, after, left)) return { ...repeat, tries }
    patience.leftMs -= after.atMs - before.atMs
  }
}

function measurement(subject: string, repeats: readonly Tried[]): Measurement {
  const samples = repeats.map(({ ns }) => ns)
  const takes = repeats.reduce((sum, repeat) => sum + repeat.takes, 0)
  const allowed = repeats.reduce((sum, repeat) => sum + repeat.allowed, 0)
  const voided = repeats.reduce((sum, { tries }) => sum + tries - 1, 0)
  return { subject, ns: summaryOf(samples), grossNs: summaryOf(repeats.map(({ grossNs }) => grossNs)), samples, takes, allowed, voided }
}

function hasOutcome({ outcome }: Subject, { takes, allowed }: Repeat): boolean {
  const least = outcome === 'allow' ? takes : outcome === 'deny' ? 0 : takes * MOSTLY
  const most = outcome === 'deny' ? 0 : takes
  return allowed >= least && allowed <= most
}
