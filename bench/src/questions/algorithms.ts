import { ALGORITHM_NAMES } from '../algorithms.js'
import type { ClockName } from '../contenders/algorithms.js'
import { type Effort, measure, type Subject, subject } from '../measure.js'
import { type Answer, of, type Question, ratioOf } from '../question.js'

const MANY_KEYS = 100_000
const TAKES_PER_TURN = 16
const OUTCOMES = ['allow', 'deny'] as const
const CLOCKS = ['precise', 'coarse'] as const

/** What a decision of each algorithm costs on one key, allowed and denied, by bound key and by key, on both clocks. */
export const algorithms: Question = {
  name: 'algorithms',
  async ask(effort: Effort): Promise<Answer[]> {
    const answers: Answer[] = []
    for (const keying of ['bound', 'keyed'] as const) {
      for (const clock of CLOCKS) answers.push(await asked(effort, keying, clock, 1))
    }
    return answers
  },
}

/** The same over 100,000 keys in random order, by key. */
export const algorithmsManyKeys: Question = {
  name: 'algorithms-100k-keys',
  async ask(effort: Effort): Promise<Answer[]> {
    const answers: Answer[] = []
    for (const clock of CLOCKS) answers.push(await asked(effort, 'keyed', clock, MANY_KEYS))
    return answers
  },
}

async function asked(effort: Effort, keying: 'bound' | 'keyed', clock: ClockName, keys: number): Promise<Answer> {
  const takesPerTurn = clock === 'coarse' ? TAKES_PER_TURN : 0
  const subjects = ALGORITHM_NAMES.flatMap((algorithm): Subject[] =>
    OUTCOMES.map((outcome) =>
      subject(`${algorithm}; ${keying}; ${clock}`, effort, { name: `${algorithm}: ${outcome}`, outcome, keys, takesPerTurn }),
    ),
  )
  const measurements = await measure(subjects, effort)
  const where = keys === 1 ? (keying === 'bound' ? 'a bound key' : 'one key') : `${keys.toLocaleString('en')} keys in random order`
  return {
    title: `Each algorithm, ${where}, ${clock} clock`,
    note: clock === 'coarse' ? `Turns of ${TAKES_PER_TURN} takes, net of the same turns without takes; gross beside it.` : 'One loop.',
    unit: 'ns',
    measurements,
    verdicts: [],
    comparison: {
      head: 'deny / allow',
      ratios: Object.fromEntries(
        ALGORITHM_NAMES.map((name) => ratioOf(of(measurements, `${name}: deny`), of(measurements, `${name}: allow`))),
      ),
    },
  }
}
