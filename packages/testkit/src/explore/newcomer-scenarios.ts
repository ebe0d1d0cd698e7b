import { A, B, C, call, D, EARLIER, LATER, NOW, peek, reset, take } from './calls.js'
import { type Scenario, scenario } from './scenario.js'

/** New keys and rivals where there is room. */
export const CLAIMS: readonly Scenario[] = [
  scenario('first take x 3, one key', [], [[take(A)], [take(A)], [take(A, NOW, 2)]], { lines: 3 }),
  scenario('first take x 2, then another', [], [[take(A), take(A)], [take(A, NOW, 2)]], { lines: 2 }),
  scenario('first take x 3, one key, idle entries', [take(B, EARLIER), take(C, EARLIER)], [[take(A)], [take(A)], [take(A, NOW, 2)]], {
    lines: 2,
  }),
  scenario('first take x 3, two keys', [], [[take(A)], [take(B)], [take(A)]], { lines: 3 }),
  scenario('first take x 3, two homes', [], [[take(A)], [take(B)], [take(B)]], { lines: 3, homes: [0, 0.5] }),
  scenario('first take x 3, a line of two', [], [[take(A)], [take(B)], [take(A)]], { lines: 1, entriesPerLine: 2 }),
  scenario('take | first take | take', [take(A)], [[take(A)], [take(B)], [take(A)]], { lines: 2 }),
  scenario('first take | penalize | reset of an unknown key', [], [[take(A)], [call('penalize', A, NOW, 1)], [reset(A)]], { lines: 2 }),
]

/** New keys that need the entry of an idle key. */
export const TAKE_OVERS: readonly Scenario[] = [
  scenario('take | take-over | take', [take(A, EARLIER), take(C, EARLIER)], [[take(A)], [take(B)], [take(A)]], { lines: 2 }),
  scenario('take | take-over, one entry', [take(A, EARLIER)], [[take(A)], [take(B)]], { mayRefuse: true }),
  scenario('first take | take-over | take, two idle entries', [take(B, EARLIER), take(C, EARLIER)], [[take(A)], [take(B)], [take(A)]], {
    lines: 2,
  }),
  scenario('take-over | take-over | take, a line of two', [take(A, EARLIER), take(C, EARLIER)], [[take(B)], [take(D)], [take(A)]], {
    entriesPerLine: 2,
    mayRefuse: true,
  }),
  scenario(
    'take | take-over | take, clocks apart',
    [take(A, NOW, 3), take(C, EARLIER)],
    [[take(A, NOW)], [take(B, LATER)], [take(A, NOW)]],
    { lines: 2, mayRefuse: true },
  ),
  scenario(
    'take | first take by a late clock | take-over',
    [take(A, NOW, 2), take(C, EARLIER)],
    [[take(A, NOW, 2)], [take(B, LATER)], [take(C, NOW + 500)]],
    { lines: 2, mayRefuse: true },
  ),
  scenario(
    'first take | first take | take-over by a late clock',
    [take(C, EARLIER)],
    [[take(A, NOW, 2)], [take(A, NOW, 3)], [take(B, LATER), take(C, LATER)]],
    { lines: 2, mayRefuse: true },
  ),
]

/** New keys where every entry is in debt. */
export const FORGETTING: readonly Scenario[] = [
  scenario('take | take that forgets another | take', [take(A, NOW, 2), take(C, NOW, 3)], [[take(A)], [take(B)], [take(C)]], {
    lines: 2,
    mayRefuse: true,
  }),
  scenario('two costs of a newcomer | one entry in debt', [take(B, NOW, 2)], [[take(A, NOW, 2)], [take(A)]], { mayRefuse: true }),
  scenario('take | take that forgets it and owes as much', [take(A, NOW, 2)], [[take(A)], [take(B, NOW, 2)]], { mayRefuse: true }),
  scenario('peek | take that forgets another | peek', [take(B, NOW, 2)], [[peek(A)], [take(A)], [peek(B)]], { mayRefuse: true }),
  scenario('take that forgets, take | take | reset', [take(A, NOW, 2), take(C, NOW, 3)], [[take(B), take(C)], [take(A)], [reset(C)]], {
    lines: 2,
    mayRefuse: true,
  }),
  scenario('refused newcomer | reset | refused newcomer', [take(B, NOW, 3)], [[take(A)], [reset(B)], [take(A)]], { mayRefuse: true }),
  scenario('newcomer | newcomer | take, full, denies newcomers', [take(B, NOW), take(C, EARLIER)], [[take(A)], [take(A)], [take(C)]], {
    denyWhenFull: true,
    lines: 2,
    mayRefuse: true,
  }),
]
