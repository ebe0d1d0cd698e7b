import { type Effort, type Measurement, measure } from '../measure.js'
import { type Answer, type Question, ratioOf } from '../question.js'
import { hotKeySubject } from './hot-key.js'
import { WORKER_COUNTS, workersName } from './sweeps.js'

const SPREAD_KEYS = 10_000

/** The token bucket by compare-and-swap and under a mutex, 1 to 4 workers on one hot key and on many. */
export const algorithmsWorkers: Question = {
  name: 'algorithms-workers',
  async ask(effort: Effort): Promise<Answer[]> {
    const answers: Answer[] = []
    for (const keys of [1, SPREAD_KEYS]) answers.push(await asked(effort, keys))
    return answers
  },
}

async function asked(effort: Effort, keys: number): Promise<Answer> {
  const subjects = WORKER_COUNTS.flatMap((workers) =>
    (['lock-free', 'mutex'] as const).map((store) =>
      hotKeySubject(workersName(store, workers), effort, { keys, store, workers, boundKey: true, clock: 'coarse' }),
    ),
  )
  const measurements = (await measure(subjects, effort)).map(withDenied)
  const pairs = WORKER_COUNTS.map((_, nth) => measurements.slice(2 * nth, 2 * nth + 2) as [Measurement, Measurement])
  return {
    title: `Token bucket, ${keys === 1 ? 'one hot key' : `${keys.toLocaleString('en')} keys in random order`}, over the number of workers`,
    note: 'Wall time over the decisions of all workers; bound keys, coarse clock, bursts of 1,024.',
    unit: 'ns',
    measurements,
    verdicts: [],
    comparison: { head: 'lock-free / mutex', ratios: Object.fromEntries(pairs.map(([lockFree, mutex]) => ratioOf(lockFree, mutex))) },
  }
}

/** Named with the share of denials, where there were any worth telling. */
function withDenied(measurement: Measurement): Measurement {
  const { subject, takes, allowed } = measurement
  const denied = ((takes - allowed) / takes) * 100
  return denied < 0.1 ? measurement : { ...measurement, subject: `${subject}, ${denied.toFixed(1)} % denied` }
}
