import { A, B, C, cancel, peek, penalize, refund, reserve, reset, take, update } from './call.js'
import { counting } from './explored-policy.js'
import { askOf, type Scenario } from './scenario.js'

// Three tokens in any ten milliseconds.

const LOG_POLICY = counting('LOG', 3, 10_000)
const LARGER = counting('LOG', 5, 10_000)
const LARGEST = counting('LOG', 6, 10_000)
const SMALLER = counting('LOG', 2, 6_000)
/** Whose time base lasts for 2^38 microseconds after the first call. */
const SHORT_LOG = { ...LOG_POLICY, numberBits: 40 }
const LAST_LOGGED = 10_000 + 2 ** 38

const logs = askOf('log', { policy: LOG_POLICY, encodings: [{ encoding: 'LOG' }] })

export const LOGS: readonly Scenario[] = [
  logs('take | take | take', [take(A)], [[take(A, 11_000)], [take(A, 11_000)], [take(A, 12_000)]]),
  logs('take | refund | take', [take(A), take(A, 11_000)], [[take(A, 12_000)], [refund(A, 12_000)], [take(A, 12_500)]]),
  logs('take | refund of two | peek', [take(A), take(A, 11_000)], [[take(A, 12_000)], [refund(A, 12_000, 2)], [peek(A, 12_500)]]),
  logs(
    'take, refund, take | take | peek',
    [take(A)],
    [[take(A, 12_000), refund(A, 12_000), take(A, 12_000)], [take(A, 12_000)], [peek(A, 12_500)]],
  ),
  logs('take | penalize | take', [take(A), take(A, 11_000)], [[take(A, 12_000)], [penalize(A, 12_000, 2)], [take(A, 20_500)]]),
  logs(
    'penalize | refund | penalize',
    [take(A, 10_000, 2), take(A, 11_000)],
    [[penalize(A, 12_000, 2)], [refund(A, 12_500)], [penalize(A, 11_000)]],
  ),
  logs('take | take after all is over | late take', [take(A), take(A, 11_000)], [[take(A, 12_000)], [take(A, 22_500)], [take(A, 13_000)]]),
  logs(
    'take after all is over | the same | refund',
    [take(A), take(A, 11_000)],
    [[take(A, 22_500)], [take(A, 22_500, 2)], [refund(A, 12_000)]],
  ),
  logs('take | take | peek, full', [take(A), take(A, 11_000), take(A, 12_000)], [[take(A, 20_500)], [take(A, 21_500)], [peek(A, 20_500)]]),
  logs(
    'take | take | take, wrapped around',
    [take(A), take(A, 11_000), take(A, 12_000), take(A, 20_500), take(A, 21_500)],
    [[take(A, 22_500), take(A, 30_600)], [take(A, 31_000)], [take(A, 22_000)]],
  ),
  logs(
    'take of two | take | peek, nearly full',
    [take(A, 10_000, 2), take(A, 12_000)],
    [[take(A, 20_500, 2)], [take(A, 22_500)], [peek(A, 22_500)]],
  ),
  logs(
    'take, take | take of two | take of two, wrapping around',
    [take(A, 10_000, 2), take(A, 19_000), take(A, 20_500, 2)],
    [[take(A, 29_500), take(A, 31_000)], [take(A, 31_000, 2)], [take(A, 30_600, 2)]],
  ),
  logs('take | reset | take', [take(A), take(A, 11_000), take(A, 12_000)], [[take(A, 20_500)], [reset(A, 12_000)], [take(A, 12_500)]], {
    lines: 2,
  }),
  logs(
    'reserve | cancel | take',
    [take(A), take(A, 11_000), take(A, 12_000)],
    [[reserve(A, 13_000)], [cancel(A, 13_000, 20_000)], [take(A, 20_500)]],
  ),
  logs(
    'reserve | reserve | refund',
    [take(A), take(A, 11_000), take(A, 12_000)],
    [[reserve(A, 13_000)], [reserve(A, 13_000, 2)], [refund(A, 13_000)]],
  ),
  logs('first take x 3', [], [[take(A), take(A, 11_000)], [take(A)], [take(A, 11_000, 2)]], { lines: 2 }),
  logs(
    'take | take-over, take | take',
    [take(A, 1_000), take(A, 2_000)],
    [[take(A, 11_500)], [take(B, 22_000), take(B, 22_500)], [take(A, 3_000)]],
    { mayRefuse: true },
  ),
  logs(
    'take-over | take-over | take of what was there',
    [take(A, 1_000), take(A, 2_000), take(C, 2_000)],
    [[take(B, 22_000), take(B, 22_500)], [take(C, 22_000)], [take(A, 22_000)]],
    { lines: 2, mayRefuse: true },
  ),
  logs('take | larger limit | take', [take(A), take(A, 11_000)], [[take(A, 12_000)], [update(LARGER, 12_000)], [take(A, 12_500)]]),
  logs(
    'take, refund | larger limit | larger limit',
    [take(A), take(A, 11_000)],
    [[take(A, 12_000), refund(A, 12_000)], [update(LARGER, 12_000)], [update(LARGEST, 12_000)]],
  ),
  logs(
    'take | smaller limit, larger limit | take',
    [take(A), take(A, 11_000), take(A, 12_000)],
    [[take(A, 20_500)], [update(SMALLER, 17_000), update(LARGER, 20_500)], [take(A, 21_000)]],
  ),
  logs(
    'take by a new time base | by the old one | refund by a new one',
    [take(A), take(A, LAST_LOGGED - 4_000), take(A, LAST_LOGGED - 3_000)],
    [[take(A, LAST_LOGGED + 6_500)], [take(A, LAST_LOGGED - 1_000)], [refund(A, LAST_LOGGED + 6_200)]],
    { policy: SHORT_LOG, movesBase: true },
  ),
]

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

const windows = askOf('windows', {
  policy: POLICY,
  encodings: [{ encoding: 'WIDE' }, { encoding: 'SLIDING' }, { encoding: 'FIXED' }],
})

export const WINDOWS: readonly Scenario[] = [
  windows('take | take | take', [take(A, FIRST)], [[take(A, FIRST)], [take(A, FIRST)], [take(A, FIRST, 2)]]),
  windows('take in the old | in the new | in the old', [take(A, FIRST)], [[take(A, OLD)], [take(A, NEW)], [take(A, OLD + 500)]]),
  windows('take in the new | in the new | in the old', [take(A, FIRST, 2)], [[take(A, NEW)], [take(A, NEW + 500)], [take(A, OLD)]]),
  windows(
    'take in the new | refund in the old | take in the new',
    [take(A, FIRST, 2)],
    [[take(A, NEW)], [refund(A, OLD)], [take(A, NEW + 500)]],
  ),
  windows(
    'take in the new | all refunded in the old, take in the new',
    [take(A, FIRST, 2)],
    [[take(A, NEW)], [refund(A, OLD, 2), take(A, NEW + 500)]],
  ),
  windows(
    'take in the new | penalize in the old | peek in the new',
    [take(A, FIRST)],
    [[take(A, NEW)], [penalize(A, OLD, 2)], [peek(A, NEW + 500)]],
  ),
  windows('take in the third | in the old | in the new', [take(A, FIRST)], [[take(A, THIRD)], [take(A, OLD)], [take(A, NEW)]]),
  windows(
    'take in the new, in the third | in the old | in the new',
    [take(A, FIRST)],
    [[take(A, NEW), take(A, THIRD)], [take(A, OLD)], [take(A, NEW + 500)]],
  ),
  windows('take in the new | reset | take in the new', [take(A, FIRST, 2)], [[take(A, NEW)], [reset(A, OLD)], [take(A, NEW)]], {
    lines: 2,
  }),
  windows(
    'take in the new, refund | take in the third | peek',
    [take(A, FIRST, 2)],
    [[take(A, NEW), refund(A, NEW)], [take(A, THIRD)], [peek(A, NEW)]],
  ),
  windows('reserve | reserve | take in the new', [take(A, FIRST, 3)], [[reserve(A, FIRST)], [reserve(A, OLD, 2)], [take(A, NEW + 8_000)]]),
  windows(
    'reserve, cancel | take in the new | take in the old',
    [take(A, FIRST, 2)],
    [[reserve(A, FIRST, 2), cancel(A, FIRST, NEW, 2)], [take(A, NEW)], [take(A, OLD)]],
  ),
  windows('first take in the new | in the old', [], [[take(A, NEW), take(A, THIRD)], [take(A, OLD)]]),
  windows(
    'take in the new | take-over, next window',
    [take(A, 1_000, 2), take(A, FIRST, 2)],
    [[take(A, NEW)], [take(B, FOURTH), take(B, FOURTH + 10_000)]],
    { mayRefuse: true },
  ),
  windows(
    'take-over | take-over | take of what was there',
    [take(A, 1_000, 2), take(A, FIRST), take(C, FIRST)],
    [[take(B, FOURTH)], [take(C, FOURTH)], [take(A, FOURTH)]],
    { lines: 2, mayRefuse: true },
  ),
  windows(
    'take in the new | tighter limit | take in the old',
    [take(A, FIRST, 3)],
    [[take(A, NEW)], [update(TIGHTER, NEW)], [take(A, OLD)]],
  ),
  windows(
    'take in the new | shorter windows | take in the new',
    [take(A, FIRST, 2)],
    [[take(A, NEW)], [update(SHORTER, NEW)], [take(A, NEW + 500)]],
  ),
  windows(
    'take by a new time base | by the old one | by a new one',
    [take(A, FIRST), take(A, LAST - 4_000, 2)],
    [[take(A, LAST + 1_000)], [take(A, LAST - 3_000)], [take(A, LAST + 6_500)]],
    { policy: SHORT_LIVED, movesBase: true },
  ),
  windows(
    'take that carries over | eight changes, the last to other windows',
    [take(A, FIRST, 2), update(SHORTER, FIRST)],
    [
      [take(A, FIRST)],
      [
        ...[POLICY, SHORTER, POLICY, SHORTER, POLICY, SHORTER, POLICY].map((policy) => update(policy, FIRST)),
        peek(A, FIRST),
        update(LONGER, FIRST),
      ],
    ],
    { encodings: [{ encoding: 'WIDE' }] },
  ),
]
