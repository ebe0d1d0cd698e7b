import type { Call, PolicyNumbers, Verb } from './call.js'
import { type Scenario, scenario } from './scenario.js'

// Keys, and three moments. At EARLIER + 9 ms everything spent EARLIER has come back; LATER lies three tokens after NOW.
const A = 0
const B = 1
const C = 2
const EARLIER = 1_000
const NOW = 10_000
const LATER = 13_000

/** Half the rate, two at once. */
const STRICTER: PolicyNumbers = { unitsPerUs: 1, unitsPerToken: 2000, burst: 2, packed: false }
/** Thrice the rate, four at once, in units of a third of a microsecond. */
const LOOSER: PolicyNumbers = { unitsPerUs: 3, unitsPerToken: 1000, burst: 4, packed: false }
const FORTNIGHT_US = 14 * 86_400e6

const call = (verb: Verb, key: number, nowUs: number, amount: number): Call => ({ verb, key, nowUs, amount })
const take = (key: number, nowUs = NOW, amount = 1): Call => call('take', key, nowUs, amount)
const peek = (key: number, nowUs = NOW): Call => call('peek', key, nowUs, 0)
const reset = (key: number): Call => call('reset', key, NOW, 0)
const block = (key: number, us: number): Call => call('block', key, NOW, us)
const update = (policy: PolicyNumbers, nowUs = NOW): Call => ({ verb: 'update', key: A, nowUs, amount: 0, policy })

const HITS: readonly Scenario[] = [
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
]

const CLAIMS: readonly Scenario[] = [
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

const TAKE_OVERS: readonly Scenario[] = [
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

const FORGETTING: readonly Scenario[] = [
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
    name: 'newcomer | newcomer | take, full and told to deny',
    denyWhenFull: true,
    lines: 2,
    homes: [0, 0, 0],
    before: [take(B, NOW), take(C, EARLIER)],
    threads: [[take(A)], [take(A)], [take(C)]],
    mayRefuse: true,
  }),
]

const UPDATES: readonly Scenario[] = [
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
]

/** Every question asked of the core, in the order in which they were found worth asking. */
export const SCENARIOS: readonly Scenario[] = [...HITS, ...CLAIMS, ...TAKE_OVERS, ...FORGETTING, ...UPDATES]

/** @throws {Error} when there is none of that name. */
export function scenarioNamed(name: string): Scenario {
  const found = SCENARIOS.find((one) => one.name === name)
  if (found === undefined) throw new Error(`no scenario "${name}"`)
  return found
}
