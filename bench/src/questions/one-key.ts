import { type Effort, measure, subject } from '../measure.js'
import { type Answer, atMost, of, type Question } from '../question.js'

const TAKES_PER_TURN = [1, 4, 16, 64]

/** A take by key, always the same one. */
export const oneKey: Question = {
  name: 'one-key',
  async ask(effort: Effort): Promise<Answer[]> {
    const measurements = await measure(
      [
        ...TAKES_PER_TURN.map((takesPerTurn) =>
          subject('sluicegate, coarse', effort, { name: `coarse, ${takesPerTurn} a turn`, takesPerTurn }),
        ),
        subject('sluicegate, coarse', effort, { name: 'coarse, one loop' }),
        subject('sluicegate, precise', effort, { name: 'precise, one loop' }),
        subject('plain Map', effort),
        subject('rate-limiter-flexible', effort),
        subject('rate-limiter-flexible, no prefix', effort),
        subject('express-rate-limit store', effort),
      ],
      effort,
    )
    return [
      {
        title: 'A take by key, 1 key',
        note: 'In turns: net of the same turns without takes; gross beside it. The others run in one loop.',
        unit: 'ns',
        measurements,
        verdicts: [
          atMost('keyed take, 1 key, coarse clock, 16 takes a turn', of(measurements, 'coarse, 16 a turn'), 25),
          atMost('keyed take, 1 key, precise clock', of(measurements, 'precise, one loop'), 65),
        ],
      },
    ]
  },
}
