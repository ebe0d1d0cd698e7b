import { A, B, C, cancel, peek, penalize, refund, reserve, reset, take, update } from './calls.js'
import { counting } from './explored-policy.js'
import { type Scenario, type ScenarioSketch, scenario } from './scenario.js'

// Three tokens in any ten milliseconds.

const POLICY = counting('LOG', 3, 10_000)
const LARGER = counting('LOG', 5, 10_000)
const LARGEST = counting('LOG', 6, 10_000)
const SMALLER = counting('LOG', 2, 6_000)
/** Whose time base lasts for 2^38 microseconds after the first call. */
const SHORT_LIVED = { ...POLICY, numberBits: 40 }
const LAST = 10_000 + 2 ** 38

const logs = (sketch: ScenarioSketch): Scenario =>
  scenario({ policy: POLICY, encodings: [{ slotBytes: 8 }, { slotBytes: 4 }], ...sketch, name: `log: ${sketch.name}` })

export const LOGS: readonly Scenario[] = [
  logs({ name: 'take | take | take', homes: [0], before: [take(A)], threads: [[take(A, 11_000)], [take(A, 11_000)], [take(A, 12_000)]] }),
  logs({
    name: 'take | refund | take',
    homes: [0],
    before: [take(A), take(A, 11_000)],
    threads: [[take(A, 12_000)], [refund(A, 12_000)], [take(A, 12_500)]],
  }),
  logs({
    name: 'take | refund of two | peek',
    homes: [0],
    before: [take(A), take(A, 11_000)],
    threads: [[take(A, 12_000)], [refund(A, 12_000, 2)], [peek(A, 12_500)]],
  }),
  logs({
    name: 'take, refund, take | take | peek',
    homes: [0],
    before: [take(A)],
    threads: [[take(A, 12_000), refund(A, 12_000), take(A, 12_000)], [take(A, 12_000)], [peek(A, 12_500)]],
  }),
  logs({
    name: 'take | penalize | take',
    homes: [0],
    before: [take(A), take(A, 11_000)],
    threads: [[take(A, 12_000)], [penalize(A, 12_000, 2)], [take(A, 20_500)]],
  }),
  logs({
    name: 'penalize | refund | penalize',
    homes: [0],
    before: [take(A, 10_000, 2), take(A, 11_000)],
    threads: [[penalize(A, 12_000, 2)], [refund(A, 12_500)], [penalize(A, 11_000)]],
  }),
  logs({
    name: 'take | take after all is over | late take',
    homes: [0],
    before: [take(A), take(A, 11_000)],
    threads: [[take(A, 12_000)], [take(A, 22_500)], [take(A, 13_000)]],
  }),
  logs({
    name: 'take after all is over | the same | refund',
    homes: [0],
    before: [take(A), take(A, 11_000)],
    threads: [[take(A, 22_500)], [take(A, 22_500, 2)], [refund(A, 12_000)]],
  }),
  logs({
    name: 'take | take | peek, full',
    homes: [0],
    before: [take(A), take(A, 11_000), take(A, 12_000)],
    threads: [[take(A, 20_500)], [take(A, 21_500)], [peek(A, 20_500)]],
  }),
  logs({
    name: 'take | take | take, wrapped around',
    homes: [0],
    before: [take(A), take(A, 11_000), take(A, 12_000), take(A, 20_500), take(A, 21_500)],
    threads: [[take(A, 22_500), take(A, 30_600)], [take(A, 31_000)], [take(A, 22_000)]],
  }),
  logs({
    name: 'take of two | take | peek, nearly full',
    homes: [0],
    before: [take(A, 10_000, 2), take(A, 12_000)],
    threads: [[take(A, 20_500, 2)], [take(A, 22_500)], [peek(A, 22_500)]],
  }),
  logs({
    name: 'take, take | take of two | take of two, wrapping around',
    homes: [0],
    before: [take(A, 10_000, 2), take(A, 19_000), take(A, 20_500, 2)],
    threads: [[take(A, 29_500), take(A, 31_000)], [take(A, 31_000, 2)], [take(A, 30_600, 2)]],
  }),
  logs({
    name: 'take | reset | take',
    homes: [0],
    lines: 2,
    before: [take(A), take(A, 11_000), take(A, 12_000)],
    threads: [[take(A, 20_500)], [reset(A, 12_000)], [take(A, 12_500)]],
  }),
  logs({
    name: 'reserve | cancel | take',
    homes: [0],
    before: [take(A), take(A, 11_000), take(A, 12_000)],
    threads: [[reserve(A, 13_000)], [cancel(A, 13_000, 20_000)], [take(A, 20_500)]],
  }),
  logs({
    name: 'reserve | reserve | refund',
    homes: [0],
    before: [take(A), take(A, 11_000), take(A, 12_000)],
    threads: [[reserve(A, 13_000)], [reserve(A, 13_000, 2)], [refund(A, 13_000)]],
  }),
  logs({ name: 'first take x 3', homes: [0], lines: 2, threads: [[take(A), take(A, 11_000)], [take(A)], [take(A, 11_000, 2)]] }),
  logs({
    name: 'take | take-over, take | take',
    homes: [0, 0],
    before: [take(A, 1_000), take(A, 2_000)],
    threads: [[take(A, 11_500)], [take(B, 22_000), take(B, 22_500)], [take(A, 3_000)]],
    mayRefuse: true,
  }),
  logs({
    name: 'take-over | take-over | take of what was there',
    homes: [0, 0, 0],
    lines: 2,
    before: [take(A, 1_000), take(A, 2_000), take(C, 2_000)],
    threads: [[take(B, 22_000), take(B, 22_500)], [take(C, 22_000)], [take(A, 22_000)]],
    mayRefuse: true,
  }),
  logs({
    name: 'take | larger limit | take',
    homes: [0],
    before: [take(A), take(A, 11_000)],
    threads: [[take(A, 12_000)], [update(LARGER, 12_000)], [take(A, 12_500)]],
  }),
  logs({
    name: 'take, refund | larger limit | larger limit',
    homes: [0],
    before: [take(A), take(A, 11_000)],
    threads: [[take(A, 12_000), refund(A, 12_000)], [update(LARGER, 12_000)], [update(LARGEST, 12_000)]],
  }),
  logs({
    name: 'take | smaller limit, larger limit | take',
    homes: [0],
    before: [take(A), take(A, 11_000), take(A, 12_000)],
    threads: [[take(A, 20_500)], [update(SMALLER, 17_000), update(LARGER, 20_500)], [take(A, 21_000)]],
  }),
  logs({
    name: 'take by a new time base | by the old one | refund by a new one',
    policy: SHORT_LIVED,
    movesBase: true,
    homes: [0],
    before: [take(A), take(A, LAST - 4_000), take(A, LAST - 3_000)],
    threads: [[take(A, LAST + 6_500)], [take(A, LAST - 1_000)], [refund(A, LAST + 6_200)]],
  }),
]
