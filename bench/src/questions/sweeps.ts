import type { ContenderName } from '../contenders.js'
import { type Effort, type Measurement, measure, subject } from '../measure.js'
import type { Answer, Question } from '../question.js'
import { hotKeySubject } from './hot-key.js'

/** Sizes of the plot over keys. */
export const KEY_COUNTS = [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000] as const

/** Lines of the plot over keys. The coarse one runs in turns of 16 takes. */
export const SWEPT: readonly ContenderName[] = [
  'sluicegate, coarse',
  'sluicegate, precise',
  'plain Map',
  'express-rate-limit store',
  'rate-limiter-flexible',
]

/** There are many subjects, and no verdict hangs on them. */
const SWEEP_EFFORT = { rounds: 7, lives: 1 }

export const WORKER_COUNTS = [1, 2, 3, 4] as const

/** Nanoseconds a decision over the number of keys, for the plot. */
export const keysSweep: Question = {
  name: 'keys-sweep',
  async ask(given: Effort): Promise<Answer[]> {
    const effort = { ...given, ...SWEEP_EFFORT }
    const measurements: Measurement[] = []
    for (const keys of KEY_COUNTS) {
      const subjects = SWEPT.map((contender) =>
        subject(contender, effort, { name: sweepName(contender, keys), keys, takesPerTurn: contender === 'sluicegate, coarse' ? 16 : 0 }),
      )
      measurements.push(...(await measure(subjects, effort)))
    }
    const note = 'Keys in random order. Coarse: turns of 16 takes, net; the others in one loop.'
    return [{ title: 'Over the number of keys', note, unit: 'ns', measurements, verdicts: [] }]
  },
}

/** One hot key under 1 to 4 workers, lock-free and under a mutex, for the plot. */
export const workersSweep: Question = {
  name: 'workers-sweep',
  async ask(given: Effort): Promise<Answer[]> {
    const effort = { ...given, ...SWEEP_EFFORT }
    const subjects = WORKER_COUNTS.flatMap((workers) =>
      (['lock-free', 'mutex'] as const).map((store) =>
        hotKeySubject(workersName(store, workers), effort, {
          keys: 1,
          store,
          workers,
          boundKey: true,
          clock: 'coarse',
        }),
      ),
    )
    const measurements = await measure(subjects, effort)
    const note = 'Wall time over the decisions of all workers; bound key, coarse clock, bursts of 1,024.'
    return [{ title: 'One hot key, over the number of workers', note, unit: 'ns', measurements, verdicts: [] }]
  },
}

export function sweepName(contender: string, keys: number): string {
  return `${contender}; ${keys.toLocaleString('en')} ${keys === 1 ? 'key' : 'keys'}`
}

export function workersName(store: string, workers: number): string {
  return `${store}; ${workers} ${workers === 1 ? 'worker' : 'workers'}`
}
