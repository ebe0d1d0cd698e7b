import { A, B, C, cancel, peek, penalize, refund, reserve, reset, take, update } from './call.js'
import { counting } from './explored-policy.js'
import { askOf, type Scenario } from './scenario.js'

// Three tokens in any ten milliseconds.

const POLICY = counting('LOG', 3, 10_000)
const LARGER = counting('LOG', 5, 10_000)
const LARGEST = counting('LOG', 6, 10_000)
const SMALLER = counting('LOG', 2, 6_000)
/** Whose time base lasts for 2^38 microseconds after the first call. */
const SHORT_LIVED = { ...POLICY, numberBits: 40 }
const LAST = 10_000 + 2 ** 38

const logs = askOf('log', { policy: POLICY, encodings: [{ encoding: 'LOG' }] })

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
    [take(A), take(A, LAST - 4_000), take(A, LAST - 3_000)],
    [[take(A, LAST + 6_500)], [take(A, LAST - 1_000)], [refund(A, LAST + 6_200)]],
    { policy: SHORT_LIVED, movesBase: true },
  ),
]
