import { A, B, block, call, cancel, NOW, peek, reserve, reset, take } from './calls.js'
import { type Scenario, scenario } from './scenario.js'

/** Calls on keys that are there, and blocks. */
export const HITS: readonly Scenario[] = [
  scenario({ name: 'take | take | take, one key', homes: [0], before: [take(A)], threads: [[take(A)], [take(A)], [take(A)]] }),
  scenario({
    name: 'take | take | take, clocks apart',
    homes: [0],
    before: [take(A, NOW, 2)],
    threads: [[take(A, NOW + 1_400)], [take(A, NOW - 300)], [take(A, NOW + 1_000)]],
  }),
  scenario({
    name: 'take, take | take, take, two keys',
    lines: 2,
    homes: [0, 0],
    before: [take(A), take(B)],
    threads: [
      [take(A), take(B)],
      [take(B), take(A)],
    ],
  }),
  scenario({ name: 'take | peek | take', homes: [0], before: [take(A)], threads: [[take(A)], [peek(A)], [take(A)]] }),
  scenario({ name: 'take | reset | take', homes: [0], before: [take(A, NOW, 3)], threads: [[take(A)], [reset(A)], [take(A)]] }),
  scenario({
    name: 'take | refund | take',
    homes: [0],
    before: [take(A, NOW, 2)],
    threads: [[take(A, NOW, 2)], [call('refund', A, NOW, 1)], [take(A)]],
  }),
  scenario({
    name: 'take | penalize | take',
    homes: [0],
    before: [take(A)],
    threads: [[take(A)], [call('penalize', A, NOW, 2)], [take(A)]],
  }),
  scenario({ name: 'take | block | take', lines: 2, homes: [0], before: [take(A)], threads: [[take(A)], [block(A, 5_000)], [take(A)]] }),
  scenario({
    name: 'take | block, lift | first take',
    lines: 3,
    homes: [0, 0],
    before: [take(A)],
    threads: [[take(A)], [block(A, 5_000), block(A, 0)], [take(B)]],
  }),
  scenario({
    name: 'take of a blocked key | lift | take after its end',
    lines: 2,
    homes: [0],
    before: [take(A), block(A, 5_000)],
    threads: [[take(A)], [block(A, 0)], [take(A, NOW + 6_000)]],
  }),
  scenario({ name: 'block | block | take', lines: 3, homes: [0], threads: [[block(A, 5_000)], [block(A, 7_000)], [take(A)]] }),
  scenario({
    name: 'reserve | reserve | take',
    homes: [0],
    before: [take(A, NOW, 2)],
    threads: [[reserve(A, NOW, 2)], [reserve(A, NOW)], [take(A)]],
  }),
  scenario({
    name: 'reserve, cancel | reserve | take',
    homes: [0],
    before: [take(A, NOW, 3)],
    threads: [[reserve(A, NOW, 2), cancel(A, NOW, 5_000, 2_000)], [reserve(A, NOW)], [take(A, NOW + 3_000)]],
  }),
]
