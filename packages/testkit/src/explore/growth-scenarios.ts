import { A, B, C, call, D, EARLIER, LATER, LOOSER, NOW, peek, reset, STRICTER, take, takeBoth, update } from './calls.js'
import { counting } from './explored-policy.js'
import { askOf, type Scenario } from './scenario.js'

// Tables of several parts: the first is full, or becomes so, and keys go on to the next; and new keys where all parts are full.

const grown = askOf('parts', { lines: 3, parts: [1, 2] })

const FIXED = counting('FIXED', 3, 10_000)
const LOG = counting('LOG', 3, 10_000)
const nine = Array.from({ length: 9 }, (_, i) => update(i % 2 === 0 ? STRICTER : LOOSER, NOW))

export const GROWTH: readonly Scenario[] = [
  grown('first take x 3, one key', [], [[take(A)], [take(A)], [take(A, NOW, 2)]]),
  grown('first take x 3, one key, first part full', [take(B, NOW, 3)], [[take(A)], [take(A)], [take(A, NOW, 2)]]),
  grown('first take x 3, two keys, three parts', [], [[take(A)], [take(B)], [take(A)]], { parts: [1, 1] }),
  grown('first take | first take | reset in the first part', [take(B, NOW, 3)], [[take(A)], [take(A)], [reset(B), take(B)]]),
  grown('first take | first take | take-over in the first part', [take(B, EARLIER)], [[take(A)], [take(A)], [take(C, NOW), take(A)]]),
  grown(
    'take | take-over | take, in the last part',
    [take(B, LATER, 3), take(C, LATER, 3), take(A, EARLIER)],
    [[take(A, NOW)], [take(D, NOW)], [take(A, NOW)]],
    { parts: [1, 1], mayRefuse: true },
  ),
  grown('take that forgets another | take | peek', [take(A, NOW, 2), take(C, NOW, 3)], [[take(B)], [take(C)], [peek(A)]], {
    lines: 2,
    parts: [1, 1],
    mayRefuse: true,
  }),
  grown('first take | nine updates, first part full', [take(B, NOW, 3)], [[take(A)], nine]),
  grown('take | nine updates, in the second part', [take(B, NOW, 3), take(A)], [[take(A)], nine]),
  grown('A and B | A | B, in two parts', [take(A), take(B)], [[takeBoth(A, B)], [take(A)], [take(B)]]),
  grown(
    'take, take-over | refund | take, logs',
    [take(B, 10_000, 3), take(A, 1_000)],
    [[take(A, 11_500), take(C, 11_500)], [call('refund', A, 11_500, 1)], [take(A, 11_500)]],
    { lines: 2, parts: [1, 1], policy: LOG, encodings: [{ slotBytes: 8 }, { slotBytes: 4 }], mayRefuse: true },
  ),
]

const full = askOf('full', { homes: [0, 0, 0], mayRefuse: true, overflow: { counters: 3, limit: 2, windowUs: 4_000 } })
/** The whole table. */
const RESIDENT = [take(B, NOW, 3)]

export const OVERFLOWS: readonly Scenario[] = [
  full('newcomer | newcomer | the first again', RESIDENT, [[take(A)], [take(C)], [take(A)]]),
  full('newcomer, twice | the same | a later clock', RESIDENT, [[take(A), take(A)], [take(A)], [take(C, LATER)]]),
  full(
    'newcomers on one counter | the same | a clock that stepped back',
    RESIDENT,
    [[take(A), take(C)], [take(C, NOW, 2)], [take(A, NOW - 3_000)]],
    { overflow: { counters: 1, limit: 8, windowUs: 16_000 } },
  ),
  full('newcomer | reset of the resident | newcomer', RESIDENT, [[take(A)], [reset(B)], [take(A)]]),
  full('newcomers under a window', RESIDENT, [[take(A), take(A)], [take(A)], [take(C, NOW, 2)]], {
    policy: FIXED,
    encodings: [{ encoding: 'FIXED' }, { encoding: 'SLIDING' }],
    overflow: { counters: 3, limit: 4, windowUs: 8_000 },
  }),
]
