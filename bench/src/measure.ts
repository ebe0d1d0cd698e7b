import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { ContenderName } from './contenders.js'
import type { Job, Repeat } from './job.js'
import { LineProcess } from './line-process.js'
import { disturbed, quiet, usage } from './quiet.js'
import { type Summary, summaryOf } from './samples.js'

/** What one subject did in all rounds of one run. */
export interface Measurement {
  readonly subject: string
  readonly ns: Summary
  readonly grossNs: Summary
  /** One a round; the same round of another subject was measured right beside it. */
  readonly samples: readonly number[]
  readonly takes: number
  /** Repeats that were thrown away because others used the processors meanwhile. */
  readonly voided: number
}

/** Somebody to measure: a name for the report and how to start its process. */
export interface Subject {
  readonly name: string
  readonly start: () => Promise<LineProcess>
  /** What every take must answer; a subject that answers otherwise measured something else. */
  readonly outcome: 'allow' | 'deny' | 'mostly allow'
}

/** How long and how often; from the command line. */
export interface Effort {
  readonly rounds: number
  readonly repeatMs: number
  /** How long to wait for quiet before a repeat, and again when others disturbed it; 0 takes every repeat as it is. */
  readonly patienceMs: number
}

const SUBJECT = fileURLToPath(new URL('./subject.js', import.meta.url))
const SETTLE_MS = 50
/** Threads that lost their processor decide by an old reading, and may find the bucket of that time empty. */
const MOSTLY = 0.99

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

/**
 * Measures all subjects in turn, round after round, each in its own process, which rests while the others run. Every other
 * round goes backwards, so that nobody always follows the same neighbour.
 */
export async function measure(subjects: readonly Subject[], effort: Effort): Promise<Measurement[]> {
  const processes: LineProcess[] = []
  for (const { start } of subjects) processes.push(await start())
  const repeats: (Repeat & { readonly tries: number })[][] = subjects.map(() => [])
  for (let round = 0; round < effort.rounds; round++) {
    const order = [...subjects.keys()]
    if (round % 2 === 1) order.reverse()
    for (const index of order) {
      const { repeat, tries } = await quietRepeat(processes[index] as LineProcess, effort)
      checkOutcome(subjects[index] as Subject, repeat)
      repeats[index]?.push({ ...repeat, tries })
    }
  }
  await Promise.all(processes.map((process) => process.stop()))
  return subjects.map(({ name }, index) => measurement(name, repeats[index] ?? []))
}

/** One repeat during which nobody else used the processors, as far as patience goes. */
async function quietRepeat(process: LineProcess, { patienceMs }: Effort): Promise<{ repeat: Repeat; tries: number }> {
  const deadlineMs = performance.now() + patienceMs
  for (let tries = 1; ; tries++) {
    await (patienceMs > 0 ? quiet(deadlineMs - performance.now()) : sleep(SETTLE_MS))
    const before = usage(process.pid)
    const repeat = (await process.ask('run')) as Repeat
    if (performance.now() >= deadlineMs || !disturbed(before, usage(process.pid))) return { repeat, tries }
  }
}

function measurement(subject: string, repeats: readonly (Repeat & { readonly tries: number })[]): Measurement {
  const samples = repeats.map(({ ns }) => ns)
  const takes = repeats.reduce((sum, repeat) => sum + repeat.takes, 0)
  const voided = repeats.reduce((sum, { tries }) => sum + tries - 1, 0)
  return { subject, ns: summaryOf(samples), grossNs: summaryOf(repeats.map(({ grossNs }) => grossNs)), samples, takes, voided }
}

function checkOutcome({ name, outcome }: Subject, { takes, allowed }: Repeat): void {
  const least = outcome === 'allow' ? takes : outcome === 'deny' ? 0 : takes * MOSTLY
  const most = outcome === 'deny' ? 0 : takes
  if (allowed < least || allowed > most) throw new Error(`${name}: ${allowed} of ${takes} takes were allowed: not what was to be measured`)
}
