import { type Effort, measure, type Subject, subject } from '../measure.js'
import { type Answer, atMost, of, type Question } from '../question.js'
import { buildGoRival, type GoLimiter, startGoRival } from '../rivals.js'

const TAKES_PER_TURN = [1, 4, 16, 64]
const JUDGED = 'bound, coarse, 16 a turn'

/** What a key costs that was hashed once, beside those who know only one key. */
export const boundKey: Question = {
  name: 'bound-key',
  async ask(effort: Effort): Promise<Answer[]> {
    const measurements = await measure(
      [
        ...TAKES_PER_TURN.map((takesPerTurn) =>
          subject('sluicegate bound, coarse', effort, { name: `bound, coarse, ${takesPerTurn} a turn`, takesPerTurn }),
        ),
        subject('sluicegate bound gcra, coarse', effort, { name: 'bound, coarse, 16 a turn, gcra', takesPerTurn: 16 }),
        subject('sluicegate bound, coarse', effort, { name: 'bound, coarse, one loop' }),
        subject('sluicegate bound, precise', effort, { name: 'bound, precise, one loop' }),
        subject('limiter', effort),
        ...goSubjects(effort),
      ],
      effort,
    )
    return [
      {
        title: 'A bound key',
        note: 'In turns: net of the same turns without takes; gross beside it. The others run in one loop.',
        unit: 'ns',
        measurements,
        verdicts: [atMost('bound key, coarse clock, 16 takes a turn', of(measurements, JUDGED), 12)],
      },
    ]
  },
}

function goSubjects(effort: Effort): Subject[] {
  if (!buildGoRival()) return []
  const limiters: readonly [string, GoLimiter][] = [
    ['Go packed CAS', 'cas'],
    ['Go packed CAS, one clock reading for 1,024', 'cas-coarse'],
    ['Go x/time/rate', 'rate'],
  ]
  return limiters.map(([name, limiter]) => ({ name, outcome: 'allow', start: () => startGoRival(limiter, 1, effort.repeatMs) }))
}
