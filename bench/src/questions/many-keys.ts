import { type Effort, measure, subject } from '../measure.js'
import { type Answer, atMostTimes, of, type Question } from '../question.js'

const THIRD = 1 / 3

/** 100,000 keys in random order, precise clock. */
export const hundredThousandKeys: Question = {
  name: '100k-keys',
  async ask(effort: Effort): Promise<Answer[]> {
    const keys = 100_000
    const measurements = await measure(
      [
        subject('sluicegate, precise', effort, { keys }),
        subject('plain Map', effort, { keys }),
        subject('rate-limiter-flexible', effort, { keys }),
        subject('rate-limiter-flexible, no prefix', effort, { keys }),
        subject('express-rate-limit store', effort, { keys }),
      ],
      effort,
    )
    const ours = of(measurements, 'sluicegate, precise')
    const what = '100,000 keys, precise clock'
    return [
      {
        title: '100,000 keys in random order, precise clock',
        note: 'One loop.',
        unit: 'ns',
        measurements,
        verdicts: [
          atMostTimes(what, ours, of(measurements, 'rate-limiter-flexible'), 1 / 4, '1/4'),
          atMostTimes(what, ours, of(measurements, 'express-rate-limit store'), 1, '1'),
        ],
      },
    ]
  },
}

/** 1,000,000 keys in random order, coarse clock, 16 takes a turn; once with keys made before, once with keys without a cached hash. */
export const millionKeys: Question = {
  name: '1m-keys',
  async ask(effort: Effort): Promise<Answer[]> {
    const made = await inTurns(effort, false)
    const fresh = await inTurns(effort, true)
    const what = '1,000,000 keys, coarse clock, 16 takes a turn'
    const ours = of(made, 'sluicegate, coarse')
    const verdicts = [
      atMostTimes(what, ours, of(made, 'rate-limiter-flexible'), THIRD, '1/3'),
      atMostTimes(what, ours, of(made, 'plain Map'), THIRD, '1/3'),
    ]
    const note = 'All in turns of 16 takes, net of the same turns without takes.'
    return [
      { title: '1,000,000 keys in random order, coarse clock', note, unit: 'ns', measurements: made, verdicts },
      {
        title: '1,000,000 keys in random order, coarse clock, fresh strings',
        note: `${note} Each key is a new string, as off a socket: a Map has to hash it too. Making it is not counted.`,
        unit: 'ns',
        measurements: fresh,
        verdicts: [],
      },
    ]
  },
}

function inTurns(effort: Effort, freshKeys: boolean) {
  const job = { keys: 1_000_000, takesPerTurn: 16, freshKeys }
  return measure(
    [
      subject('sluicegate, coarse', effort, job),
      subject('plain Map', effort, job),
      subject('plain Map, coarse', effort, job),
      subject('rate-limiter-flexible', effort, job),
      subject('rate-limiter-flexible, no prefix', effort, job),
      subject('express-rate-limit store', effort, job),
    ],
    effort,
  )
}
