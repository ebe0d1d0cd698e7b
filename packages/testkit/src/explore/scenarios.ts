import {
  A,
  B,
  block,
  C,
  call,
  cancel,
  D,
  EARLIER,
  FORTNIGHT_US,
  LATER,
  LOOSER,
  load,
  NOW,
  peek,
  penalize,
  refund,
  release,
  reserve,
  reset,
  STRICTER,
  save,
  take,
  takeBoth,
  update,
} from './call.js'
import { counting } from './explored-policy.js'
import { HOLDS } from './hold-scenarios.js'
import { PERMITS } from './permit-scenarios.js'
import { askOf, type Scenario, scenario } from './scenario.js'
import { LOGS, WINDOWS } from './window-scenarios.js'

// Takes of two keys at once: both, or neither.

const both = askOf('both', { lines: 2 })
const WIDE = counting('WIDE', 3, 10_000)
const WITH_LOG = counting('LOG', 3, 10_000)
const WITH_PERMITS = counting('CONCURRENCY', 2, 10_000)
const known = [take(A), take(B)]

const BOTH: readonly Scenario[] = [
  both('A and B | B and A | A', known, [[takeBoth(A, B)], [takeBoth(B, A)], [take(A)]]),
  both('A and B | A | B', known, [[takeBoth(A, B)], [take(A)], [take(B)]]),
  both('A and B | B and A, A comes first', [take(B)], [[takeBoth(A, B)], [takeBoth(B, A)]]),
  both('A and B, A and B | A', known, [[takeBoth(A, B), takeBoth(A, B)], [take(A)]]),
  both('A and B | newcomer, full, denies newcomers | peek', known, [[takeBoth(A, B)], [take(C)], [peek(A)]], {
    denyWhenFull: true,
    mayRefuse: true,
  }),
  both('A and B, B full | refund | peek', [take(A), take(B, 10_000, 3)], [[takeBoth(A, B)], [refund(B, 10_000)], [peek(A)]]),
  both('A and B | reset | penalize', known, [[takeBoth(A, B)], [reset(A)], [penalize(B, 10_000)]]),
  both('A and B | B and C | C and A', [...known, take(C)], [[takeBoth(A, B)], [takeBoth(B, C)], [takeBoth(C, A)]], { lines: 3 }),
  both(
    'A and B | B and A | A, over a window',
    [take(A, 12_000), take(B, 12_000)],
    [[takeBoth(A, B, 21_000)], [takeBoth(B, A, 19_000)], [take(A, 21_000)]],
    { policy: WIDE, encodings: [{ encoding: 'WIDE' }, { encoding: 'FIXED' }] },
  ),
  both('A and B | B and A | refund, logs', known, [[takeBoth(A, B, 11_000)], [takeBoth(B, A, 11_000)], [refund(A, 11_000)]], {
    policy: WITH_LOG,
    encodings: [{ encoding: 'LOG' }],
  }),
  both('A and B | A | B, logs begin anew', [...known, take(A, 11_000)], [[takeBoth(A, B, 22_000)], [take(A, 12_000)], [take(B, 22_500)]], {
    policy: WITH_LOG,
    encodings: [{ encoding: 'LOG' }],
  }),
  both('A and B | larger logs | A', known, [[takeBoth(A, B, 11_000)], [update(counting('LOG', 5, 10_000), 11_000)], [take(A, 11_000)]], {
    policy: WITH_LOG,
    encodings: [{ encoding: 'LOG' }],
  }),
  both('A and B | B and A | A, release, permits', [take(A)], [[takeBoth(A, B)], [takeBoth(B, A)], [take(A), release(A, 10_000)]], {
    policy: WITH_PERMITS,
    encodings: [{}],
  }),
]

const NINE_UPDATES = Array.from({ length: 9 }, (_, i) => update(i % 2 === 0 ? STRICTER : LOOSER))

/** Changes of policy and of the time base, while calls are under way. */
const UPDATES: readonly Scenario[] = [
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

/** New keys and rivals where there is room. */
const CLAIMS: readonly Scenario[] = [
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
const TAKE_OVERS: readonly Scenario[] = [
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
const FORGETTING: readonly Scenario[] = [
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

/** Calls on keys that are there, and blocks. */
const HITS: readonly Scenario[] = [
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

// Tables of several parts: the first is full, or becomes so, and keys go on to the next; and new keys where all parts are full.

const grown = askOf('parts', { lines: 3, parts: [1, 2] })

const FIXED = counting('FIXED', 3, 10_000)
const LOG = counting('LOG', 3, 10_000)
const nine = Array.from({ length: 9 }, (_, i) => update(i % 2 === 0 ? STRICTER : LOOSER, NOW))

const GROWTH: readonly Scenario[] = [
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
    { lines: 2, parts: [1, 1], policy: LOG, encodings: [{ encoding: 'LOG' }], mayRefuse: true },
  ),
]

const full = askOf('full', { homes: [0, 0, 0], mayRefuse: true, overflow: { counters: 3, limit: 2, windowUs: 4_000 } })
/** The whole table. */
const RESIDENT = [take(B, NOW, 3)]

const OVERFLOWS: readonly Scenario[] = [
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

const saved = askOf('saved', {})

const SAVED: readonly Scenario[] = [
  saved('save | take | take', [take(A)], [[save(A)], [take(A)], [take(A)]]),
  saved('save | save | refund', [take(A, NOW, 2)], [[save(A)], [save(A)], [refund(A, NOW)]]),
  saved('load | take | peek', [], [[load(A)], [take(A)], [peek(A)]]),
  saved('load into what is spent | take | reset', [take(A)], [[load(A)], [take(A)], [reset(A)]]),
  saved('save and load again | take', [take(A)], [[save(A), load(A)], [take(A)]]),
  saved('save | update | take', [take(A, NOW, 2)], [[save(A)], [update(LOOSER)], [take(A)]]),
]

/** Every question asked of the core, in the order in which they were found worth asking. */
export const SCENARIOS: readonly Scenario[] = [
  ...HITS,
  ...CLAIMS,
  ...TAKE_OVERS,
  ...FORGETTING,
  ...UPDATES,
  ...BOTH,
  ...WINDOWS,
  ...LOGS,
  ...PERMITS,
  ...GROWTH,
  ...OVERFLOWS,
  ...SAVED,
  ...HOLDS,
]

/** @throws {Error} when there is none of that name. */
export function scenarioNamed(name: string): Scenario {
  const found = SCENARIOS.find((one) => one.name === name)
  if (found === undefined) throw new Error(`no scenario "${name}"`)
  return found
}
