import { A, B, C, call, D, EARLIER, LATER, LOOSER, NOW, peek, reset, STRICTER, take, takeBoth, update } from './calls.js'
import { counting } from './explored-policy.js'
import { type Scenario, type ScenarioSketch, scenario } from './scenario.js'

// Tables of several parts: the first is full, or becomes so, and keys go on to the next; and new keys where all parts are full.

const grown = (sketch: Omit<ScenarioSketch, 'name'> & { readonly name: string }): Scenario =>
  scenario({ lines: 3, parts: [1, 2], ...sketch, name: `parts: ${sketch.name}` })

const FIXED = counting('FIXED', 3, 10_000)
const LOG = counting('LOG', 3, 10_000)
const nine = Array.from({ length: 9 }, (_, i) => update(i % 2 === 0 ? STRICTER : LOOSER, NOW))

export const GROWTH: readonly Scenario[] = [
  grown({ name: 'first take x 3, one key', homes: [0], threads: [[take(A)], [take(A)], [take(A, NOW, 2)]] }),
  grown({
    name: 'first take x 3, one key, first part full',
    homes: [0, 0],
    before: [take(B, NOW, 3)],
    threads: [[take(A)], [take(A)], [take(A, NOW, 2)]],
  }),
  grown({ name: 'first take x 3, two keys, three parts', parts: [1, 1], homes: [0, 0], threads: [[take(A)], [take(B)], [take(A)]] }),
  grown({
    name: 'first take | first take | reset in the first part',
    homes: [0, 0],
    before: [take(B, NOW, 3)],
    threads: [[take(A)], [take(A)], [reset(B), take(B)]],
  }),
  grown({
    name: 'first take | first take | take-over in the first part',
    homes: [0, 0, 0],
    before: [take(B, EARLIER)],
    threads: [[take(A)], [take(A)], [take(C, NOW), take(A)]],
  }),
  grown({
    name: 'take | take-over | take, in the last part',
    parts: [1, 1],
    homes: [0, 0, 0, 0],
    before: [take(B, LATER, 3), take(C, LATER, 3), take(A, EARLIER)],
    threads: [[take(A, NOW)], [take(D, NOW)], [take(A, NOW)]],
    mayRefuse: true,
  }),
  grown({
    name: 'take that forgets another | take | peek',
    lines: 2,
    parts: [1, 1],
    homes: [0, 0, 0],
    before: [take(A, NOW, 2), take(C, NOW, 3)],
    threads: [[take(B)], [take(C)], [peek(A)]],
    mayRefuse: true,
  }),
  grown({ name: 'first take | nine updates, first part full', homes: [0, 0], before: [take(B, NOW, 3)], threads: [[take(A)], nine] }),
  grown({ name: 'take | nine updates, in the second part', homes: [0, 0], before: [take(B, NOW, 3), take(A)], threads: [[take(A)], nine] }),
  grown({
    name: 'A and B | A | B, in two parts',
    homes: [0, 0],
    before: [take(A), take(B)],
    threads: [[takeBoth(A, B)], [take(A)], [take(B)]],
  }),
  grown({
    name: 'take, take-over | refund | take, logs',
    lines: 2,
    parts: [1, 1],
    policy: LOG,
    encodings: [{ slotBytes: 8 }, { slotBytes: 4 }],
    homes: [0, 0, 0],
    before: [take(B, 10_000, 3), take(A, 1_000)],
    threads: [[take(A, 11_500), take(C, 11_500)], [call('refund', A, 11_500, 1)], [take(A, 11_500)]],
    mayRefuse: true,
  }),
]

const full = (sketch: Omit<ScenarioSketch, 'homes'>): Scenario =>
  scenario({
    homes: [0, 0, 0],
    before: [take(B, NOW, 3)],
    mayRefuse: true,
    overflow: { counters: 3, limit: 2, windowUs: 4_000 },
    ...sketch,
    name: `full: ${sketch.name}`,
  })

export const OVERFLOWS: readonly Scenario[] = [
  full({ name: 'newcomer | newcomer | the first again', threads: [[take(A)], [take(C)], [take(A)]] }),
  full({ name: 'newcomer, twice | the same | a later clock', threads: [[take(A), take(A)], [take(A)], [take(C, LATER)]] }),
  full({
    name: 'newcomers on one counter | the same | a clock that stepped back',
    overflow: { counters: 1, limit: 8, windowUs: 16_000 },
    threads: [[take(A), take(C)], [take(C, NOW, 2)], [take(A, NOW - 3_000)]],
  }),
  full({ name: 'newcomer | reset of the resident | newcomer', threads: [[take(A)], [reset(B)], [take(A)]] }),
  full({
    name: 'newcomers under a window',
    policy: FIXED,
    encodings: [{ encoding: 'FIXED' }, { encoding: 'SLIDING' }],
    overflow: { counters: 3, limit: 4, windowUs: 8_000 },
    threads: [[take(A), take(A)], [take(A)], [take(C, NOW, 2)]],
  }),
]
