import { A, B, block, C, EARLIER, FORTNIGHT_US, LOOSER, NOW, reset, STRICTER, take, update } from './calls.js'
import { type Scenario, scenario } from './scenario.js'

const NINE_UPDATES = Array.from({ length: 9 }, (_, i) => update(i % 2 === 0 ? STRICTER : LOOSER))

/** Changes of policy and of the time base, while calls are under way. */
export const UPDATES: readonly Scenario[] = [
  scenario('take | update | take', [take(A, NOW, 2)], [[take(A)], [update(STRICTER)], [take(A)]], { lines: 2 }),
  scenario('take | looser update | take, second epoch', [take(A), take(B), update(STRICTER)], [[take(A)], [update(LOOSER)], [take(B)]], {
    lines: 2,
  }),
  scenario('first take | update | first take', [], [[take(A)], [update(STRICTER)], [take(A)]], { lines: 2 }),
  scenario('take-over | update | take', [take(A, EARLIER), take(C, EARLIER)], [[take(B)], [update(STRICTER)], [take(A)]], {
    lines: 2,
    mayRefuse: true,
  }),
  scenario('update | update | take', [take(A)], [[update(STRICTER)], [update(LOOSER)], [take(A)]], { lines: 2 }),
  scenario(
    'take | take, past the end of the time base',
    [take(A)],
    [[take(A, FORTNIGHT_US)], [take(A, FORTNIGHT_US)], [take(B, FORTNIGHT_US)]],
    { lines: 2, movesBase: true },
  ),
  scenario('take of a blocked key | update | lift', [take(A), block(A, 5_000)], [[take(A)], [update(STRICTER)], [block(A, 0)]], {
    lines: 3,
  }),
  scenario('take that forgets another | update | take', [take(A)], [[take(B)], [update(STRICTER)], [take(A)]], { mayRefuse: true }),
  scenario('reset | update | take', [take(A, NOW, 3)], [[reset(A)], [update(LOOSER)], [take(A)]], { lines: 2 }),
  // A state word has three bits for its epoch: a thread that stands still meanwhile sees them come round.
  scenario('take | nine updates', [take(A)], [[take(A)], NINE_UPDATES], { lines: 2 }),
  scenario('first take | nine updates', [], [[take(A)], NINE_UPDATES], { lines: 2 }),
  scenario('take-over | nine updates', [take(A, EARLIER), take(C, EARLIER)], [[take(B)], NINE_UPDATES], { lines: 2, mayRefuse: true }),
]
