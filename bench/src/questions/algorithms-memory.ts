import { ALGORITHM_NAMES, type AlgorithmName } from '../algorithms.js'
import { bytesAKey } from '../bytes-a-key.js'
import { LOG_LIMITS, type LogContenderName } from '../contenders/algorithms.js'
import type { Measurement } from '../measure.js'
import type { Answer, Question } from '../question.js'

const KEYS = 100_000
const TIMES = 3

/** Bytes a key of each algorithm, and of logs with one request in them and with as many as they hold. */
export const algorithmsMemory: Question = {
  name: 'algorithms-memory',
  async ask(): Promise<Answer[]> {
    const measurements: Measurement[] = []
    const filling = { keys: KEYS, times: TIMES }
    for (const name of ALGORITHM_NAMES.filter(hasFixedSize)) {
      measurements.push(...(await bytesAKey(`${name}; keyed; precise`, filling, name)))
    }
    for (const limit of LOG_LIMITS) {
      for (const slotBytes of [8, 4] as const) {
        const name: LogContenderName = `sliding log of ${limit}, ${slotBytes} bytes`
        measurements.push(...(await bytesAKey(name, filling, `${name}, one request a key`)))
        measurements.push(...(await bytesAKey(name, { ...filling, takesPerKey: limit }, `${name}, full`)))
      }
    }
    const note =
      'Resident: growth of the resident set in a fresh process, after a full collection. By its own stats: memoryBytes. Concurrency: 100 permits.'
    return [{ title: 'Each algorithm at 100,000 keys, bytes a key', note, unit: 'bytes', measurements, verdicts: [] }]
  },
}

/** What a log takes depends on its limit: those are measured apart. */
function hasFixedSize(name: AlgorithmName): boolean {
  return !name.startsWith('sliding log')
}
