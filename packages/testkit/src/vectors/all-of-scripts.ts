import { at, DAWN, DAY, SECOND, script } from './script.js'
import type { Vector, VectorPolicies } from './vector.js'

const BUCKET_AND_DAY: VectorPolicies = {
  parts: [
    { algorithm: 'token-bucket', limit: 10, windowUs: SECOND, burst: 10 },
    { algorithm: 'fixed-window', limit: 25, windowUs: DAY },
  ],
}

const LARGER_AND_SMALLER: VectorPolicies = {
  parts: [
    { algorithm: 'token-bucket', limit: 10, windowUs: SECOND, burst: 20 },
    { algorithm: 'fixed-window', limit: 12, windowUs: DAY },
  ],
}

export const ALL_OF_SCRIPTS: readonly Vector[] = [
  script('all are charged or none', BUCKET_AND_DAY, [
    at(DAWN, { times: 12, take: 1 }),
    at(DAWN + SECOND, { take: 10 }),
    at(DAWN + 2 * SECOND, { take: 6 }, { take: 5 }),
    at(DAWN + 3 * SECOND, { take: 1 }),
    at(DAWN + DAY, { take: 10 }),
  ]),
  script('the part with the least left speaks; of those that deny, the one with the longest wait', BUCKET_AND_DAY, [
    at(DAWN, { take: 10 }, { take: 1 }, { take: 16 }),
    at(DAWN + 1_500_000, { take: 10 }, { peek: 6 }, { peek: 11 }),
  ]),
  script('one key for each part', BUCKET_AND_DAY, [
    at(
      DAWN,
      { keys: ['user 1', 'team'], take: 10 },
      { keys: ['user 2', 'team'], take: 10 },
      { keys: ['user 3', 'team'], take: 6 },
      { keys: ['user 3', 'team'], take: 5 },
      { keys: ['user 3', 'other team'], take: 6 },
      { keys: ['user 3', 'other team'], take: 5 },
      { keys: ['team', 'user 1'], take: 10 },
    ),
  ]),
  script('verbs go to every part', BUCKET_AND_DAY, [
    at(DAWN, { penalize: 12 }, { refund: 4 }, { blockUs: 5 * SECOND }),
    at(DAWN + SECOND, { take: 1 }, { reset: true }, { take: 10 }, { update: LARGER_AND_SMALLER }, { take: 3 }, { take: 2 }),
  ]),
  script(
    'every algorithm at once',
    {
      parts: [
        { algorithm: 'gcra', limit: 100, windowUs: SECOND, burst: 4 },
        { algorithm: 'sliding-window', limit: 5, windowUs: SECOND },
        { algorithm: 'sliding-log', limit: 5, windowUs: 2 * SECOND, slotBytes: 4 },
        { algorithm: 'fixed-window', limit: 6, windowUs: 10 * SECOND },
      ],
    },
    [
      at(DAWN, { times: 6, take: 1 }),
      at(DAWN + 10_000, { take: 1 }, { take: 1 }),
      at(DAWN + SECOND, { take: 1 }),
      at(DAWN + 2 * SECOND, { take: 1 }, { take: 1 }),
      at(DAWN + 10 * SECOND, { take: 4 }),
    ],
  ),
]
