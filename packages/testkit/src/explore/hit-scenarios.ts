import { A, B, block, call, cancel, NOW, peek, reserve, reset, take } from './calls.js'
import { type Scenario, scenario } from './scenario.js'

/** Calls on keys that are there, and blocks. */
export const HITS: readonly Scenario[] = [
  scenario('take | take | take, one key', [take(A)], [[take(A)], [take(A)], [take(A)]]),
  scenario('take | take | take, clocks apart', [take(A, NOW, 2)], [[take(A, NOW + 1_400)], [take(A, NOW - 300)], [take(A, NOW + 1_000)]]),
  scenario(
    'take, take | take, take, two keys',
    [take(A), take(B)],
    [
      [take(A), take(B)],
      [take(B), take(A)],
    ],
    { lines: 2 },
  ),
  scenario('take | peek | take', [take(A)], [[take(A)], [peek(A)], [take(A)]]),
  scenario('take | reset | take', [take(A, NOW, 3)], [[take(A)], [reset(A)], [take(A)]]),
  scenario('take | refund | take', [take(A, NOW, 2)], [[take(A, NOW, 2)], [call('refund', A, NOW, 1)], [take(A)]]),
  scenario('take | penalize | take', [take(A)], [[take(A)], [call('penalize', A, NOW, 2)], [take(A)]]),
  scenario('take | block | take', [take(A)], [[take(A)], [block(A, 5_000)], [take(A)]], { lines: 2 }),
  scenario('take | block, lift | first take', [take(A)], [[take(A)], [block(A, 5_000), block(A, 0)], [take(B)]], { lines: 3 }),
  scenario(
    'take of a blocked key | lift | take after its end',
    [take(A), block(A, 5_000)],
    [[take(A)], [block(A, 0)], [take(A, NOW + 6_000)]],
    { lines: 2 },
  ),
  scenario('block | block | take', [], [[block(A, 5_000)], [block(A, 7_000)], [take(A)]], { lines: 3 }),
  scenario('reserve | reserve | take', [take(A, NOW, 2)], [[reserve(A, NOW, 2)], [reserve(A, NOW)], [take(A)]]),
  scenario(
    'reserve, cancel | reserve | take',
    [take(A, NOW, 3)],
    [[reserve(A, NOW, 2), cancel(A, NOW, 5_000, 2_000)], [reserve(A, NOW)], [take(A, NOW + 3_000)]],
  ),
]
