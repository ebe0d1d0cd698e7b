import { A, B, block, C, EARLIER, FORTNIGHT_US, LOOSER, NOW, reset, STRICTER, take, update } from './calls.js'
import { type Scenario, scenario } from './scenario.js'

const NINE_UPDATES = Array.from({ length: 9 }, (_, i) => update(i % 2 === 0 ? STRICTER : LOOSER))

/** Changes of policy and of the time base, while calls are under way. */
export const UPDATES: readonly Scenario[] = [
  scenario({
    name: 'take | update | take',
    lines: 2,
    homes: [0],
    before: [take(A, NOW, 2)],
    threads: [[take(A)], [update(STRICTER)], [take(A)]],
  }),
  scenario({
    name: 'take | looser update | take, second epoch',
    lines: 2,
    homes: [0, 0],
    before: [take(A), take(B), update(STRICTER)],
    threads: [[take(A)], [update(LOOSER)], [take(B)]],
  }),
  scenario({ name: 'first take | update | first take', lines: 2, homes: [0], threads: [[take(A)], [update(STRICTER)], [take(A)]] }),
  scenario({
    name: 'take-over | update | take',
    lines: 2,
    homes: [0, 0, 0],
    before: [take(A, EARLIER), take(C, EARLIER)],
    threads: [[take(B)], [update(STRICTER)], [take(A)]],
    mayRefuse: true,
  }),
  scenario({
    name: 'update | update | take',
    lines: 2,
    homes: [0],
    before: [take(A)],
    threads: [[update(STRICTER)], [update(LOOSER)], [take(A)]],
  }),
  scenario({
    name: 'take | take, past the end of the time base',
    lines: 2,
    movesBase: true,
    homes: [0, 0],
    before: [take(A)],
    threads: [[take(A, FORTNIGHT_US)], [take(A, FORTNIGHT_US)], [take(B, FORTNIGHT_US)]],
  }),
  scenario({
    name: 'take of a blocked key | update | lift',
    lines: 3,
    homes: [0],
    before: [take(A), block(A, 5_000)],
    threads: [[take(A)], [update(STRICTER)], [block(A, 0)]],
  }),
  scenario({
    name: 'take that forgets another | update | take',
    homes: [0, 0],
    before: [take(A)],
    threads: [[take(B)], [update(STRICTER)], [take(A)]],
    mayRefuse: true,
  }),
  scenario({
    name: 'reset | update | take',
    lines: 2,
    homes: [0],
    before: [take(A, NOW, 3)],
    threads: [[reset(A)], [update(LOOSER)], [take(A)]],
  }),
  // A state word has three bits for its epoch: a thread that stands still meanwhile sees them come round.
  scenario({ name: 'take | nine updates', lines: 2, homes: [0], before: [take(A)], threads: [[take(A)], NINE_UPDATES] }),
  scenario({ name: 'first take | nine updates', lines: 2, homes: [0], threads: [[take(A)], NINE_UPDATES] }),
  scenario({
    name: 'take-over | nine updates',
    lines: 2,
    homes: [0, 0, 0],
    before: [take(A, EARLIER), take(C, EARLIER)],
    threads: [[take(B)], NINE_UPDATES],
    mayRefuse: true,
  }),
]
