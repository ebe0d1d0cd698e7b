import { fileURLToPath } from 'node:url'
import type { ContenderName } from './contenders.js'
import type { Job } from './job.js'
import { type Measurement, startNode } from './measure.js'
import type { Filled } from './memory-subject.js'
import { summaryOf } from './samples.js'

export interface Filling {
  readonly keys: number
  readonly takesPerKey?: number
  /** Each in a fresh process. */
  readonly times: number
}

/** A young generation of fixed size: its growth under the garbage of takes is the engine's, not the contender's. */
const FLAGS = ['--expose-gc', '--min-semi-space-size=16', '--max-semi-space-size=16']
const SUBJECT = fileURLToPath(new URL('./memory-subject.js', import.meta.url))

/** What a contender's keys cost: growth of the resident set, and what it says itself, if it does. */
export async function bytesAKey(
  contender: ContenderName,
  { keys, takesPerKey = 1, times }: Filling,
  name: string = contender,
): Promise<Measurement[]> {
  const job: Job = { contender, keys, takesPerTurn: 0, outcome: 'allow', freshKeys: false, repeatMs: 0, takesPerKey }
  const filled: Filled[] = []
  for (let nth = 0; nth < times; nth++) filled.push(await fill(job))
  const measured = (kind: string, bytes: readonly number[]): Measurement => {
    const samples = bytes.map((each) => each / keys)
    const summary = summaryOf(samples)
    const takes = keys * takesPerKey * times
    return { subject: `${name}: ${kind}`, ns: summary, grossNs: summary, samples, takes, allowed: takes, voided: 0 }
  }
  const own = filled.flatMap(({ ownBytes }) => ownBytes ?? [])
  const resident = filled.map(({ residentBytes }) => residentBytes)
  return [measured('resident', resident), ...(own.length > 0 ? [measured('by its own stats', own)] : [])]
}

async function fill(job: Job): Promise<Filled> {
  const process = await startNode(job.contender, SUBJECT, job, FLAGS)
  const filled = (await process.ask('run')) as Filled
  await process.stop()
  return filled
}
