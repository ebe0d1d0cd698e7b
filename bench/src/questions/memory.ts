import { bytesAKey } from '../bytes-a-key.js'
import type { ContenderName } from '../contenders.js'
import type { Measurement } from '../measure.js'
import { type Answer, atMost, of, type Question } from '../question.js'

const FILLING = { keys: 1_000_000, times: 7 }
const CONTENDERS: readonly ContenderName[] = ['sluicegate, precise', 'plain Map', 'rate-limiter-flexible', 'express-rate-limit store']

/** Bytes a key at a million keys, each repeat in a fresh process. */
export const memory: Question = {
  name: 'memory',
  async ask(): Promise<Answer[]> {
    const measurements: Measurement[] = []
    for (const contender of CONTENDERS) measurements.push(...(await bytesAKey(contender, FILLING)))
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
