import { A, B, C, cancel, peek, penalize, refund, reserve, reset, take, update } from './calls.js'
import { counting } from './explored-policy.js'
import { type Scenario, type ScenarioSketch, scenario } from './scenario.js'

// Three tokens in ten milliseconds; the wide encoding has the most to lose where one window ends and the next begins.

const POLICY = counting('WIDE', 3, 10_000)
const TIGHTER = counting('WIDE', 2, 10_000)
const SHORTER = counting('WIDE', 2, 4_000)
const LONGER = counting('WIDE', 3, 20_000)
/** In the first window, shortly before its end; in the second, third and fourth. */
const FIRST = 12_000
const OLD = 19_000
const NEW = 21_000
const THIRD = 31_000
const FOURTH = 41_000
/** Whose time base lasts for 2^18 windows after the first call. */
const SHORT_LIVED = { ...POLICY, numberBits: 20 }
const LAST = FIRST + 2 ** 18 * 10_000

const windows = (sketch: ScenarioSketch): Scenario =>
  scenario({
    policy: POLICY,
    encodings: [{ encoding: 'WIDE' }, { encoding: 'SLIDING' }, { encoding: 'COMPACT' }, { encoding: 'FIXED' }],
    ...sketch,
    name: `windows: ${sketch.name}`,
  })

export const WINDOWS: readonly Scenario[] = [
  windows({
    name: 'take | take | take',
    homes: [0],
    before: [take(A, FIRST)],
    threads: [[take(A, FIRST)], [take(A, FIRST)], [take(A, FIRST, 2)]],
  }),
  windows({
    name: 'take in the old | in the new | in the old',
    homes: [0],
    before: [take(A, FIRST)],
    threads: [[take(A, OLD)], [take(A, NEW)], [take(A, OLD + 500)]],
  }),
  windows({
    name: 'take in the new | in the new | in the old',
    homes: [0],
    before: [take(A, FIRST, 2)],
    threads: [[take(A, NEW)], [take(A, NEW + 500)], [take(A, OLD)]],
  }),
  windows({
    name: 'take in the new | refund in the old | take in the new',
    homes: [0],
    before: [take(A, FIRST, 2)],
    threads: [[take(A, NEW)], [refund(A, OLD)], [take(A, NEW + 500)]],
  }),
  windows({
    name: 'take in the new | all refunded in the old, take in the new',
    homes: [0],
    before: [take(A, FIRST, 2)],
    threads: [[take(A, NEW)], [refund(A, OLD, 2), take(A, NEW + 500)]],
  }),
  windows({
    name: 'take in the new | penalize in the old | peek in the new',
    homes: [0],
    before: [take(A, FIRST)],
    threads: [[take(A, NEW)], [penalize(A, OLD, 2)], [peek(A, NEW + 500)]],
  }),
  windows({
    name: 'take in the third | in the old | in the new',
    homes: [0],
    before: [take(A, FIRST)],
    threads: [[take(A, THIRD)], [take(A, OLD)], [take(A, NEW)]],
  }),
  windows({
    name: 'take in the new, in the third | in the old | in the new',
    homes: [0],
    before: [take(A, FIRST)],
    threads: [[take(A, NEW), take(A, THIRD)], [take(A, OLD)], [take(A, NEW + 500)]],
  }),
  windows({
    name: 'take in the new | reset | take in the new',
    homes: [0],
    lines: 2,
    before: [take(A, FIRST, 2)],
    threads: [[take(A, NEW)], [reset(A, OLD)], [take(A, NEW)]],
  }),
  windows({
    name: 'take in the new, refund | take in the third | peek',
    homes: [0],
    before: [take(A, FIRST, 2)],
    threads: [[take(A, NEW), refund(A, NEW)], [take(A, THIRD)], [peek(A, NEW)]],
  }),
  windows({
    name: 'reserve | reserve | take in the new',
    homes: [0],
    before: [take(A, FIRST, 3)],
    threads: [[reserve(A, FIRST)], [reserve(A, OLD, 2)], [take(A, NEW + 8_000)]],
  }),
  windows({
    name: 'reserve, cancel | take in the new | take in the old',
    homes: [0],
    before: [take(A, FIRST, 2)],
    threads: [[reserve(A, FIRST, 2), cancel(A, FIRST, NEW, 2)], [take(A, NEW)], [take(A, OLD)]],
  }),
  windows({ name: 'first take in the new | in the old', homes: [0], threads: [[take(A, NEW), take(A, THIRD)], [take(A, OLD)]] }),
  windows({
    name: 'take in the new | take-over, next window',
    homes: [0, 0],
    before: [take(A, 1_000, 2), take(A, FIRST, 2)],
    threads: [[take(A, NEW)], [take(B, FOURTH), take(B, FOURTH + 10_000)]],
    mayRefuse: true,
  }),
  windows({
    name: 'take-over | take-over | take of what was there',
    homes: [0, 0, 0],
    lines: 2,
    before: [take(A, 1_000, 2), take(A, FIRST), take(C, FIRST)],
    threads: [[take(B, FOURTH)], [take(C, FOURTH)], [take(A, FOURTH)]],
    mayRefuse: true,
  }),
  windows({
    name: 'take in the new | tighter limit | take in the old',
    homes: [0],
    before: [take(A, FIRST, 3)],
    threads: [[take(A, NEW)], [update(TIGHTER, NEW)], [take(A, OLD)]],
  }),
  windows({
    name: 'take in the new | shorter windows | take in the new',
    homes: [0],
    before: [take(A, FIRST, 2)],
    threads: [[take(A, NEW)], [update(SHORTER, NEW)], [take(A, NEW + 500)]],
  }),
  windows({
    name: 'take by a new time base | by the old one | by a new one',
    policy: SHORT_LIVED,
    movesBase: true,
    homes: [0],
    before: [take(A, FIRST), take(A, LAST - 4_000, 2)],
    threads: [[take(A, LAST + 1_000)], [take(A, LAST - 3_000)], [take(A, LAST + 6_500)]],
  }),
  windows({
    name: 'take that carries over | eight changes, the last to other windows',
    encodings: [{ encoding: 'WIDE' }],
    homes: [0],
    before: [take(A, FIRST, 2), update(SHORTER, FIRST)],
    threads: [
      [take(A, FIRST)],
      [
        ...[POLICY, SHORTER, POLICY, SHORTER, POLICY, SHORTER, POLICY].map((policy) => update(policy, FIRST)),
        peek(A, FIRST),
        update(LONGER, FIRST),
      ],
    ],
  }),
]
