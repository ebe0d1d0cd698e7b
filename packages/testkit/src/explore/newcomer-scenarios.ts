import { A, B, C, call, D, EARLIER, LATER, NOW, peek, reset, take } from './calls.js'
import { type Scenario, scenario } from './scenario.js'

/** New keys and rivals where there is room. */
export const CLAIMS: readonly Scenario[] = [
  scenario({ name: 'first take x 3, one key', lines: 3, homes: [0], threads: [[take(A)], [take(A)], [take(A, NOW, 2)]] }),
  scenario({ name: 'first take x 2, then another', lines: 2, homes: [0], threads: [[take(A), take(A)], [take(A, NOW, 2)]] }),
  scenario({
    name: 'first take x 3, one key, idle entries',
    lines: 2,
    homes: [0, 0, 0],
    before: [take(B, EARLIER), take(C, EARLIER)],
    threads: [[take(A)], [take(A)], [take(A, NOW, 2)]],
  }),
  scenario({ name: 'first take x 3, two keys', lines: 3, homes: [0, 0], threads: [[take(A)], [take(B)], [take(A)]] }),
  scenario({ name: 'first take x 3, two homes', lines: 3, homes: [0, 0.5], threads: [[take(A)], [take(B)], [take(B)]] }),
  scenario({
    name: 'first take x 3, a line of two',
    lines: 1,
    entriesPerLine: 2,
    homes: [0, 0],
    threads: [[take(A)], [take(B)], [take(A)]],
  }),
  scenario({ name: 'take | first take | take', lines: 2, homes: [0, 0], before: [take(A)], threads: [[take(A)], [take(B)], [take(A)]] }),
  scenario({
    name: 'first take | penalize | reset of an unknown key',
    lines: 2,
    homes: [0],
    threads: [[take(A)], [call('penalize', A, NOW, 1)], [reset(A)]],
  }),
]

/** New keys that need the entry of an idle key. */
export const TAKE_OVERS: readonly Scenario[] = [
  scenario({
    name: 'take | take-over | take',
    lines: 2,
    homes: [0, 0, 0],
    before: [take(A, EARLIER), take(C, EARLIER)],
    threads: [[take(A)], [take(B)], [take(A)]],
  }),
  scenario({
    name: 'take | take-over, one entry',
    homes: [0, 0],
    before: [take(A, EARLIER)],
    threads: [[take(A)], [take(B)]],
    mayRefuse: true,
  }),
  scenario({
    name: 'first take | take-over | take, two idle entries',
    lines: 2,
    homes: [0, 0, 0],
    before: [take(B, EARLIER), take(C, EARLIER)],
    threads: [[take(A)], [take(B)], [take(A)]],
  }),
  scenario({
    name: 'take-over | take-over | take, a line of two',
    entriesPerLine: 2,
    homes: [0, 0, 0, 0],
    before: [take(A, EARLIER), take(C, EARLIER)],
    threads: [[take(B)], [take(D)], [take(A)]],
    mayRefuse: true,
  }),
  scenario({
    name: 'take | take-over | take, clocks apart',
    lines: 2,
    homes: [0, 0, 0],
    before: [take(A, NOW, 3), take(C, EARLIER)],
    threads: [[take(A, NOW)], [take(B, LATER)], [take(A, NOW)]],
    mayRefuse: true,
  }),
  scenario({
    name: 'take | first take by a late clock | take-over',
    lines: 2,
    homes: [0, 0, 0],
    before: [take(A, NOW, 2), take(C, EARLIER)],
    threads: [[take(A, NOW, 2)], [take(B, LATER)], [take(C, NOW + 500)]],
    mayRefuse: true,
  }),
  scenario({
    name: 'first take | first take | take-over by a late clock',
    lines: 2,
    homes: [0, 0, 0],
    before: [take(C, EARLIER)],
    threads: [[take(A, NOW, 2)], [take(A, NOW, 3)], [take(B, LATER), take(C, LATER)]],
    mayRefuse: true,
  }),
]

/** New keys where every entry is in debt. */
export const FORGETTING: readonly Scenario[] = [
  scenario({
    name: 'take | take that forgets another | take',
    lines: 2,
    homes: [0, 0, 0],
    before: [take(A, NOW, 2), take(C, NOW, 3)],
    threads: [[take(A)], [take(B)], [take(C)]],
    mayRefuse: true,
  }),
  scenario({
    name: 'two costs of a newcomer | one entry in debt',
    homes: [0, 0],
    before: [take(B, NOW, 2)],
    threads: [[take(A, NOW, 2)], [take(A)]],
    mayRefuse: true,
  }),
  scenario({
    name: 'take | take that forgets it and owes as much',
    homes: [0, 0],
    before: [take(A, NOW, 2)],
    threads: [[take(A)], [take(B, NOW, 2)]],
    mayRefuse: true,
  }),
  scenario({
    name: 'peek | take that forgets another | peek',
    homes: [0, 0],
    before: [take(B, NOW, 2)],
    threads: [[peek(A)], [take(A)], [peek(B)]],
    mayRefuse: true,
  }),
  scenario({
    name: 'take that forgets, take | take | reset',
    lines: 2,
    homes: [0, 0, 0],
    before: [take(A, NOW, 2), take(C, NOW, 3)],
    threads: [[take(B), take(C)], [take(A)], [reset(C)]],
    mayRefuse: true,
  }),
  scenario({
    name: 'refused newcomer | reset | refused newcomer',
    homes: [0, 0],
    before: [take(B, NOW, 3)],
    threads: [[take(A)], [reset(B)], [take(A)]],
    mayRefuse: true,
  }),
  scenario({
    name: 'newcomer | newcomer | take, full, denies newcomers',
    denyWhenFull: true,
    lines: 2,
    homes: [0, 0, 0],
    before: [take(B, NOW), take(C, EARLIER)],
    threads: [[take(A)], [take(A)], [take(C)]],
    mayRefuse: true,
  }),
]
