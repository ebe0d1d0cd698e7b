import type { ContenderName } from '../contenders.js'
import { type Effort, measure, type Subject, subject } from '../measure.js'
import { type Answer, atMostTimes, of, type Question } from '../question.js'

const CONTENDERS: readonly ContenderName[] = [
  'sluicegate, precise',
  'sluicegate bound, precise',
  'plain Map',
  'rate-limiter-flexible',
  'express-rate-limit store',
  'limiter',
]

/** What a denial costs beside an allow: under attack nearly all are denials. */
export const denial: Question = {
  name: 'denial',
  async ask(effort: Effort): Promise<Answer[]> {
    const coarse: Subject[] = (['allow', 'deny'] as const).map((outcome) =>
      subject('sluicegate, coarse', effort, { name: `sluicegate, coarse, 16 a turn, ${outcome}`, outcome, takesPerTurn: 16 }),
    )
    const others = CONTENDERS.flatMap((contender) =>
      (['allow', 'deny'] as const).map((outcome) => subject(contender, effort, { name: `${contender}, ${outcome}`, outcome })),
    )
    const measurements = await measure([...coarse, ...others], effort)
    const verdicts = ['sluicegate, precise', 'sluicegate, coarse, 16 a turn'].map((who) =>
      atMostTimes('a denial', of(measurements, `${who}, deny`), of(measurements, `${who}, allow`), 1, '1'),
    )
    return [{ title: 'A denial beside an allow, 1 key', note: 'One loop, but where turns are named.', unit: 'ns', measurements, verdicts }]
  },
}
