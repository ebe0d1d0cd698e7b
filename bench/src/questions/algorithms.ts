import { ALGORITHM_NAMES } from '../algorithms.js'
import type { ClockName } from '../contenders/algorithms.js'
import { type Effort, measure, type Subject, subject } from '../measure.js'
import { type Answer, of, type Question, ratioOf } from '../question.js'

const TAKES_PER_TURN = 16
const OUTCOMES = ['allow', 'deny'] as const
const CLOCKS = ['precise', 'coarse'] as const

/** What a decision of each algorithm costs on one key, allowed and denied, by bound key and by key, on both clocks. */
export const algorithms: Question = {
  name: 'algorithms',
  async ask(effort: Effort): Promise<Answer[]> {
    const answers: Answer[] = []
    for (const keying of ['bound', 'keyed'] as const) {
      for (const clock of CLOCKS) answers.push(await asked(effort, keying, clock))
    }
    return answers
  },
}

async function asked(effort: Effort, keying: 'bound' | 'keyed', clock: ClockName): Promise<Answer> {
  const takesPerTurn = clock === 'coarse' ? TAKES_PER_TURN : 0
  const subjects = ALGORITHM_NAMES.flatMap((algorithm): Subject[] =>
    OUTCOMES.map((outcome) =>
      subject(`${algorithm}; ${keying}; ${clock}`, effort, { name: `${algorithm}: ${outcome}`, outcome, takesPerTurn }),
    ),
  )
  const measurements = await measure(subjects, effort)
  return {
    title: `Each algorithm, ${keying === 'bound' ? 'a bound key' : 'one key'}, ${clock} clock`,
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
