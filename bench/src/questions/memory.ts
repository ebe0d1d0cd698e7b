import { fileURLToPath } from 'node:url'
import type { ContenderName } from '../contenders.js'
import type { Job } from '../job.js'
import { type Effort, type Measurement, startNode } from '../measure.js'
import type { Filled } from '../memory-subject.js'
import { type Answer, atMost, of, type Question } from '../question.js'
import { summaryOf } from '../samples.js'

const KEYS = 1_000_000
const FILLINGS = 7
/** A young generation of fixed size: its growth under the garbage of takes is the engine's, not the contender's. */
const FLAGS = ['--expose-gc', '--min-semi-space-size=16', '--max-semi-space-size=16']
const SUBJECT = fileURLToPath(new URL('../memory-subject.js', import.meta.url))
const CONTENDERS: readonly ContenderName[] = ['sluicegate, precise', 'plain Map', 'rate-limiter-flexible', 'express-rate-limit store']

/** Bytes a key at a million keys, each repeat in a fresh process. */
export const memory: Question = {
  name: 'memory',
  async ask(effort: Effort): Promise<Answer[]> {
    const measurements: Measurement[] = []
    for (const contender of CONTENDERS) {
      const filled: Filled[] = []
      for (let round = 0; round < FILLINGS; round++) filled.push(await fill(contender, effort))
      measurements.push(bytesAKey(contender, 'resident', filled, ({ residentBytes }) => residentBytes))
      if (filled[0]?.ownBytes !== undefined)
        measurements.push(bytesAKey(contender, 'by its own stats', filled, ({ ownBytes = 0 }) => ownBytes))
    }
    const what = 'memory, 1,000,000 keys, bytes a key'
    return [
      {
        title: 'Memory at 1,000,000 keys, bytes a key',
        note: 'Growth of the resident set after a full collection; keys are made for the take and kept only by who keeps them.',
        unit: 'bytes',
        measurements,
        verdicts: [
          atMost(`${what}, resident`, of(measurements, 'sluicegate, precise: resident'), 24, 'bytes'),
          atMost(`${what}, stats().memoryBytes`, of(measurements, 'sluicegate, precise: by its own stats'), 24, 'bytes'),
        ],
      },
    ]
  },
}

async function fill(contender: ContenderName, { repeatMs }: Effort): Promise<Filled> {
  const job: Job = { contender, keys: KEYS, takesPerTurn: 0, outcome: 'allow', freshKeys: false, repeatMs }
  const process = await startNode(contender, SUBJECT, job, FLAGS)
  const filled = (await process.ask('run')) as Filled
  await process.stop()
  return filled
}

function bytesAKey(contender: string, kind: string, filled: readonly Filled[], bytes: (filled: Filled) => number): Measurement {
  const samples = filled.map((each) => bytes(each) / KEYS)
  const summary = summaryOf(samples)
  return { subject: `${contender}: ${kind}`, ns: summary, grossNs: summary, samples, takes: KEYS * filled.length, voided: 0 }
}
