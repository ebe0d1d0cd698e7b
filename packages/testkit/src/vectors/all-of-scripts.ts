import { DAWN, DAY, SECOND, script } from './script.js'
import type { Vector, VectorPolicies } from './vector.js'

const BUCKET_AND_DAY: VectorPolicies = {
  parts: [
    { algorithm: 'token-bucket', limit: 10, windowUs: SECOND, burst: 10 },
    { algorithm: 'fixed-window', limit: 25, windowUs: DAY },
  ],
}

export const ALL_OF_SCRIPTS: readonly Vector[] = [
  script('all are charged or none', BUCKET_AND_DAY, [
    { atUs: DAWN, times: 12, take: 1 },
    { atUs: DAWN + SECOND, take: 10 },
    { atUs: DAWN + 2 * SECOND, take: 6 },
    { atUs: DAWN + 2 * SECOND, take: 5 },
    { atUs: DAWN + 3 * SECOND, take: 1 },
    { atUs: DAWN + DAY, take: 10 },
  ]),
  script('the part with the least left speaks; of those that deny, the one with the longest wait', BUCKET_AND_DAY, [
    { atUs: DAWN, take: 10 },
    { atUs: DAWN, take: 1 },
    { atUs: DAWN, take: 16 },
    { atUs: DAWN + 1_500_000, take: 10 },
    { atUs: DAWN + 1_500_000, peek: 6 },
    { atUs: DAWN + 1_500_000, peek: 11 },
  ]),
  script('one key for each part', BUCKET_AND_DAY, [
    { atUs: DAWN, keys: ['user 1', 'team'], take: 10 },
    { atUs: DAWN, keys: ['user 2', 'team'], take: 10 },
    { atUs: DAWN, keys: ['user 3', 'team'], take: 6 },
    { atUs: DAWN, keys: ['user 3', 'team'], take: 5 },
    { atUs: DAWN, keys: ['user 3', 'other team'], take: 6 },
    { atUs: DAWN, keys: ['user 3', 'other team'], take: 5 },
    { atUs: DAWN, keys: ['team', 'user 1'], take: 10 },
  ]),
  script('verbs go to every part', BUCKET_AND_DAY, [
    { atUs: DAWN, penalize: 12 },
    { atUs: DAWN, refund: 4 },
    { atUs: DAWN, blockUs: 5 * SECOND },
    { atUs: DAWN + SECOND, take: 1 },
    { atUs: DAWN + SECOND, reset: true },
    { atUs: DAWN + SECOND, take: 10 },
    {
      atUs: DAWN + SECOND,
      update: {
        parts: [
          { algorithm: 'token-bucket', limit: 10, windowUs: SECOND, burst: 20 },
          { algorithm: 'fixed-window', limit: 12, windowUs: DAY },
        ],
      },
    },
    { atUs: DAWN + SECOND, take: 3 },
    { atUs: DAWN + SECOND, take: 2 },
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
      { atUs: DAWN, times: 6, take: 1 },
      { atUs: DAWN + 10_000, take: 1 },
      { atUs: DAWN + 10_000, take: 1 },
      { atUs: DAWN + SECOND, take: 1 },
      { atUs: DAWN + 2 * SECOND, take: 1 },
      { atUs: DAWN + 2 * SECOND, take: 1 },
      { atUs: DAWN + 10 * SECOND, take: 4 },
    ],
  ),
]
