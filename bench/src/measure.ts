import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { ContenderName } from './contenders.js'
import type { Job, Repeat } from './job.js'
import { LineProcess } from './line-process.js'
import { type Summary, summaryOf } from './samples.js'

/** What one subject did in all rounds of one run. */
export interface Measurement {
  readonly subject: string
  readonly ns: Summary
  readonly grossNs: Summary
  /** One a round; the same round of another subject was measured right beside it. */
  readonly samples: readonly number[]
  readonly takes: number
}

/** Somebody to measure: a name for the report and how to start its process. */
export interface Subject {
  readonly name: string
  readonly start: () => Promise<LineProcess>
  /** What every take must answer; a subject that answers otherwise measured something else. */
  readonly outcome: 'allow' | 'deny'
}

/** How long and how often; from the command line. */
export interface Effort {
  readonly rounds: number
  readonly repeatMs: number
}

const SUBJECT = fileURLToPath(new URL('./subject.js', import.meta.url))
const SETTLE_MS = 50

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
  const repeats: Repeat[][] = subjects.map(() => [])
  for (let round = 0; round < effort.rounds; round++) {
    const order = [...subjects.keys()]
    if (round % 2 === 1) order.reverse()
    for (const index of order) {
      await sleep(SETTLE_MS)
      const repeat = (await (processes[index] as LineProcess).ask('run')) as Repeat
      checkOutcome(subjects[index] as Subject, repeat)
      repeats[index]?.push(repeat)
    }
  }
  await Promise.all(processes.map((process) => process.stop()))
  return subjects.map(({ name }, index) => measurement(name, repeats[index] as Repeat[]))
}

function measurement(subject: string, repeats: readonly Repeat[]): Measurement {
  const samples = repeats.map(({ ns }) => ns)
  const takes = repeats.reduce((sum, repeat) => sum + repeat.takes, 0)
  return { subject, ns: summaryOf(samples), grossNs: summaryOf(repeats.map(({ grossNs }) => grossNs)), samples, takes }
}

function checkOutcome({ name, outcome }: Subject, { takes, allowed }: Repeat): void {
  const expected = outcome === 'allow' ? takes : 0
  if (allowed !== expected)
    throw new Error(`${name}: ${allowed} of ${takes} takes were allowed instead of ${expected}: not what was to be measured`)
}
