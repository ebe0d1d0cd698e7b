import { A, B, C, peek, penalize, refund, release, reset, take, takeBoth, update } from './calls.js'
import { counting } from './explored-policy.js'
import { type Scenario, type ScenarioSketch, scenario } from './scenario.js'

// Takes of two keys at once: both, or neither.

const both = (sketch: Omit<ScenarioSketch, 'homes'> & Partial<ScenarioSketch>): Scenario =>
  scenario({ lines: 2, homes: [0, 0], ...sketch, name: `both: ${sketch.name}` })
const WIDE = counting('WIDE', 3, 10_000)
const LOG = counting('LOG', 3, 10_000)
const PERMITS = counting('CONCURRENCY', 2, 10_000)
const known = [take(A), take(B)]

export const BOTH: readonly Scenario[] = [
  both({ name: 'A and B | B and A | A', before: known, threads: [[takeBoth(A, B)], [takeBoth(B, A)], [take(A)]] }),
  both({ name: 'A and B | A | B', before: known, threads: [[takeBoth(A, B)], [take(A)], [take(B)]] }),
  both({ name: 'A and B | B and A, A comes first', before: [take(B)], threads: [[takeBoth(A, B)], [takeBoth(B, A)]] }),
  both({ name: 'A and B, A and B | A', before: known, threads: [[takeBoth(A, B), takeBoth(A, B)], [take(A)]] }),
  both({
    name: 'A and B | newcomer, full, denies newcomers | peek',
    homes: [0, 0, 0],
    denyWhenFull: true,
    mayRefuse: true,
    before: known,
    threads: [[takeBoth(A, B)], [take(C)], [peek(A)]],
  }),
  both({
    name: 'A and B, B full | refund | peek',
    before: [take(A), take(B, 10_000, 3)],
    threads: [[takeBoth(A, B)], [refund(B, 10_000)], [peek(A)]],
  }),
  both({ name: 'A and B | reset | penalize', before: known, threads: [[takeBoth(A, B)], [reset(A)], [penalize(B, 10_000)]] }),
  both({
    name: 'A and B | B and C | C and A',
    homes: [0, 0, 0],
    lines: 3,
    before: [...known, take(C)],
    threads: [[takeBoth(A, B)], [takeBoth(B, C)], [takeBoth(C, A)]],
  }),
  both({
    name: 'A and B | B and A | A, over a window',
    policy: WIDE,
    encodings: [{ encoding: 'WIDE' }, { encoding: 'FIXED' }],
    before: [take(A, 12_000), take(B, 12_000)],
    threads: [[takeBoth(A, B, 21_000)], [takeBoth(B, A, 19_000)], [take(A, 21_000)]],
  }),
  both({
    name: 'A and B | B and A | refund, logs',
    policy: LOG,
    encodings: [{ slotBytes: 8 }, { slotBytes: 4 }],
    before: known,
    threads: [[takeBoth(A, B, 11_000)], [takeBoth(B, A, 11_000)], [refund(A, 11_000)]],
  }),
  both({
    name: 'A and B | A | B, logs begin anew',
    policy: LOG,
    encodings: [{ slotBytes: 8 }, { slotBytes: 4 }],
    before: [...known, take(A, 11_000)],
    threads: [[takeBoth(A, B, 22_000)], [take(A, 12_000)], [take(B, 22_500)]],
  }),
  both({
    name: 'A and B | larger logs | A',
    policy: LOG,
    encodings: [{ slotBytes: 8 }, { slotBytes: 4 }],
    before: known,
    threads: [[takeBoth(A, B, 11_000)], [update(counting('LOG', 5, 10_000), 11_000)], [take(A, 11_000)]],
  }),
  both({
    name: 'A and B | B and A | A, release, permits',
    policy: PERMITS,
    encodings: [{}],
    before: [take(A)],
    threads: [[takeBoth(A, B)], [takeBoth(B, A)], [take(A), release(A, 10_000)]],
  }),
]
