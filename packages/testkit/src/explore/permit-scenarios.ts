import { A, about, B, call, heartbeat, peek, penalize, refund, release, reset, take, update } from './calls.js'
import { counting } from './explored-policy.js'
import { type Scenario, type ScenarioSketch, scenario } from './scenario.js'

// Two in flight, each for ten milliseconds. A permit given at NOW expires at ITS_END.

const POLICY = counting('CONCURRENCY', 2, 10_000)
const THREE = counting('CONCURRENCY', 3, 10_000)
const FOUR = counting('CONCURRENCY', 4, 10_000)
const ONE = counting('CONCURRENCY', 1, 10_000)
const ITS_END = 20_000
/** Whose time base lasts for 2^38 microseconds after the first call. */
const SHORT_LIVED = { ...POLICY, numberBits: 40 }
const LAST = 10_000 + 2 ** 38

const permits = (sketch: ScenarioSketch): Scenario =>
  scenario({ policy: POLICY, encodings: [{}], ...sketch, name: `permits: ${sketch.name}` })

export const PERMITS: readonly Scenario[] = [
  permits({
    name: 'take | take | take',
    homes: [0],
    before: [take(A)],
    threads: [[take(A, 11_000)], [take(A, 11_000)], [peek(A, 12_000)]],
  }),
  permits({ name: 'first take x 3', homes: [0], lines: 2, threads: [[take(A)], [take(A)], [take(A)]] }),
  permits({
    name: 'first take x 3, idle entries',
    homes: [0, 0],
    lines: 2,
    before: [take(B, 1_000), take(B, 1_000)],
    threads: [[take(A, 21_000)], [take(A, 21_000)], [take(A, 21_000)]],
  }),
  permits({
    name: 'take, release | take, release | take',
    homes: [0],
    before: [take(A)],
    threads: [[take(A), release(A, 10_000)], [take(A), release(A, 10_000)], [take(A)]],
  }),
  permits({
    name: 'take | heartbeat | release, over an expiry',
    homes: [0],
    before: [take(A), take(A)],
    threads: [[take(A, 20_500)], [about(heartbeat(A, 19_000), 0, ITS_END)], [about(release(A, 19_500), 1, ITS_END)]],
  }),
  permits({
    name: 'take of two | heartbeat | heartbeat, over an expiry',
    homes: [0],
    before: [take(A), take(A)],
    threads: [[take(A, 20_500, 2)], [about(heartbeat(A, 19_000), 0, ITS_END)], [about(heartbeat(A, 20_200), 1, ITS_END)]],
  }),
  permits({
    name: 'take, heartbeat, release | take | take, over an expiry',
    homes: [0],
    before: [take(A)],
    threads: [[take(A, 11_000), heartbeat(A, 20_500), release(A, 22_000)], [take(A, 21_500)], [take(A, 20_000)]],
  }),
  permits({
    name: 'heartbeat | release of the same | take',
    homes: [0],
    before: [take(A), take(A, 11_000)],
    threads: [[about(heartbeat(A, 12_000), 0, ITS_END)], [about(release(A, 12_000), 0, ITS_END)], [take(A, 12_000)]],
  }),
  permits({
    name: 'take | release | release, two keys',
    homes: [0, 0],
    lines: 2,
    before: [take(A), take(A), take(B)],
    threads: [[take(A, 11_000), take(B, 11_000)], [about(release(A, 11_000), 0, ITS_END)], [about(release(B, 11_000), 2, ITS_END)]],
  }),
  permits({
    name: 'take-over | heartbeat | take',
    homes: [0, 0],
    before: [take(A)],
    threads: [[take(B, 20_500)], [about(heartbeat(A, 19_000), 0, ITS_END)], [take(A, 19_500)]],
    mayRefuse: true,
  }),
  permits({
    name: 'take-over, take | release | take-over',
    homes: [0, 0, 0],
    lines: 2,
    before: [take(A), take(A, 11_000)],
    threads: [[take(B, 21_500), take(B, 21_500)], [about(release(A, 19_000), 0, ITS_END)], [take(A, 21_500)]],
    mayRefuse: true,
  }),
  permits({
    name: 'release | reset | take',
    homes: [0],
    lines: 2,
    before: [take(A), take(A)],
    threads: [[about(release(A, 11_000), 0, ITS_END)], [reset(A, 11_000)], [take(A, 11_000)]],
  }),
  permits({
    name: 'newcomer | reset, full, denies newcomers',
    homes: [0, 0],
    denyWhenFull: true,
    before: [take(A), take(A)],
    threads: [[take(B, 11_000)], [reset(A, 11_000)], [take(B, 11_000)]],
    mayRefuse: true,
  }),
  permits({
    name: 'refund | take | release',
    homes: [0],
    before: [take(A, 10_000, 2)],
    threads: [[refund(A, 11_000)], [take(A, 11_000)], [{ ...about(release(A, 11_000), 0, ITS_END), amount: 2 }]],
  }),
  permits({
    name: 'refund of two permits | take | peek',
    homes: [0],
    before: [take(A), take(A, 11_000)],
    threads: [[refund(A, 12_000, 2)], [take(A, 12_000)], [peek(A, 12_000)]],
  }),
  permits({
    name: 'penalize | take | release',
    homes: [0],
    before: [take(A)],
    threads: [[penalize(A, 11_000, 2)], [take(A, 11_000)], [about(release(A, 11_000), 0, ITS_END)]],
  }),
  permits({
    name: 'take | three in flight | release',
    homes: [0],
    before: [take(A), take(A)],
    threads: [[take(A, 11_000)], [update(THREE, 11_000)], [about(release(A, 11_000), 1, ITS_END)]],
  }),
  permits({
    name: 'three in flight | four in flight | release, take',
    homes: [0],
    before: [take(A), take(A)],
    threads: [[update(THREE, 11_000)], [update(FOUR, 11_000)], [about(release(A, 11_000), 0, ITS_END), take(A, 11_000)]],
  }),
  permits({
    name: 'three in flight, take | one in flight | peek',
    homes: [0],
    before: [take(A), take(A)],
    threads: [[update(THREE, 11_000), take(A, 11_000)], [update(ONE, 11_000)], [peek(A, 11_000)]],
  }),
  permits({
    name: 'take | one in flight | heartbeat',
    homes: [0],
    before: [take(A)],
    threads: [[take(A, 11_000)], [update(ONE, 11_000)], [about(heartbeat(A, 11_000), 0, ITS_END)]],
  }),
  permits({
    name: 'take-over | three in flight | take',
    homes: [0, 0],
    before: [take(A)],
    threads: [[take(B, 21_000)], [update(THREE, 21_000)], [call('take', A, 21_000, 2)]],
    mayRefuse: true,
  }),
  permits({
    name: 'take by a new time base | heartbeat by the old one | release by a new one',
    policy: SHORT_LIVED,
    movesBase: true,
    homes: [0],
    before: [take(A), take(A, LAST - 4_000)],
    threads: [
      [take(A, LAST + 6_500)],
      [about(heartbeat(A, LAST - 1_000), 1, LAST + 6_000)],
      [about(release(A, LAST + 500), 1, LAST + 6_000)],
    ],
  }),
]
