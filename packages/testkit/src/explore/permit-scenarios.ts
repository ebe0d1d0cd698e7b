import { A, about, B, call, heartbeat, peek, penalize, refund, release, reset, take, update } from './call.js'
import { counting } from './explored-policy.js'
import { askOf, type Scenario } from './scenario.js'

// Two in flight, each for ten milliseconds. A permit given at NOW expires at ITS_END.

const POLICY = counting('CONCURRENCY', 2, 10_000)
const THREE = counting('CONCURRENCY', 3, 10_000)
const FOUR = counting('CONCURRENCY', 4, 10_000)
const ONE = counting('CONCURRENCY', 1, 10_000)
const ITS_END = 20_000
/** Whose time base lasts for 2^38 microseconds after the first call. */
const SHORT_LIVED = { ...POLICY, numberBits: 40 }
const LAST = 10_000 + 2 ** 38

const permits = askOf('permits', { policy: POLICY, encodings: [{}] })

export const PERMITS: readonly Scenario[] = [
  permits('take | take | take', [take(A)], [[take(A, 11_000)], [take(A, 11_000)], [peek(A, 12_000)]]),
  permits('first take x 3', [], [[take(A)], [take(A)], [take(A)]], { lines: 2 }),
  permits('first take x 3, idle entries', [take(B, 1_000), take(B, 1_000)], [[take(A, 21_000)], [take(A, 21_000)], [take(A, 21_000)]], {
    lines: 2,
  }),
  permits('take, release | take, release | take', [take(A)], [[take(A), release(A, 10_000)], [take(A), release(A, 10_000)], [take(A)]]),
  permits(
    'take | heartbeat | release, over an expiry',
    [take(A), take(A)],
    [[take(A, 20_500)], [about(heartbeat(A, 19_000), 0, ITS_END)], [about(release(A, 19_500), 1, ITS_END)]],
  ),
  permits(
    'take of two | heartbeat | heartbeat, over an expiry',
    [take(A), take(A)],
    [[take(A, 20_500, 2)], [about(heartbeat(A, 19_000), 0, ITS_END)], [about(heartbeat(A, 20_200), 1, ITS_END)]],
  ),
  permits(
    'take, heartbeat, release | take | take, over an expiry',
    [take(A)],
    [[take(A, 11_000), heartbeat(A, 20_500), release(A, 22_000)], [take(A, 21_500)], [take(A, 20_000)]],
  ),
  permits(
    'heartbeat | release of the same | take',
    [take(A), take(A, 11_000)],
    [[about(heartbeat(A, 12_000), 0, ITS_END)], [about(release(A, 12_000), 0, ITS_END)], [take(A, 12_000)]],
  ),
  permits(
    'take | release | release, two keys',
    [take(A), take(A), take(B)],
    [[take(A, 11_000), take(B, 11_000)], [about(release(A, 11_000), 0, ITS_END)], [about(release(B, 11_000), 2, ITS_END)]],
    { lines: 2 },
  ),
  permits('take-over | heartbeat | take', [take(A)], [[take(B, 20_500)], [about(heartbeat(A, 19_000), 0, ITS_END)], [take(A, 19_500)]], {
    mayRefuse: true,
  }),
  permits(
    'take-over, take | release | take-over',
    [take(A), take(A, 11_000)],
    [[take(B, 21_500), take(B, 21_500)], [about(release(A, 19_000), 0, ITS_END)], [take(A, 21_500)]],
    { homes: [0, 0, 0], lines: 2, mayRefuse: true },
  ),
  permits('release | reset | take', [take(A), take(A)], [[about(release(A, 11_000), 0, ITS_END)], [reset(A, 11_000)], [take(A, 11_000)]], {
    lines: 2,
  }),
  permits('newcomer | reset, full, denies newcomers', [take(A), take(A)], [[take(B, 11_000)], [reset(A, 11_000)], [take(B, 11_000)]], {
    denyWhenFull: true,
    mayRefuse: true,
  }),
  permits(
    'refund | take | release',
    [take(A, 10_000, 2)],
    [[refund(A, 11_000)], [take(A, 11_000)], [{ ...about(release(A, 11_000), 0, ITS_END), amount: 2 }]],
  ),
  permits(
    'refund of two permits | take | peek',
    [take(A), take(A, 11_000)],
    [[refund(A, 12_000, 2)], [take(A, 12_000)], [peek(A, 12_000)]],
  ),
  permits('penalize | take | release', [take(A)], [[penalize(A, 11_000, 2)], [take(A, 11_000)], [about(release(A, 11_000), 0, ITS_END)]]),
  permits(
    'take | three in flight | release',
    [take(A), take(A)],
    [[take(A, 11_000)], [update(THREE, 11_000)], [about(release(A, 11_000), 1, ITS_END)]],
  ),
  permits(
    'three in flight | four in flight | release, take',
    [take(A), take(A)],
    [[update(THREE, 11_000)], [update(FOUR, 11_000)], [about(release(A, 11_000), 0, ITS_END), take(A, 11_000)]],
  ),
  permits(
    'three in flight, take | one in flight | peek',
    [take(A), take(A)],
    [[update(THREE, 11_000), take(A, 11_000)], [update(ONE, 11_000)], [peek(A, 11_000)]],
  ),
  permits(
    'take | one in flight | heartbeat',
    [take(A)],
    [[take(A, 11_000)], [update(ONE, 11_000)], [about(heartbeat(A, 11_000), 0, ITS_END)]],
  ),
  permits('take-over | three in flight | take', [take(A)], [[take(B, 21_000)], [update(THREE, 21_000)], [call('take', A, 21_000, 2)]], {
    mayRefuse: true,
  }),
  permits(
    'take by a new time base | heartbeat by the old one | release by a new one',
    [take(A), take(A, LAST - 4_000)],
    [[take(A, LAST + 6_500)], [about(heartbeat(A, LAST - 1_000), 1, LAST + 6_000)], [about(release(A, LAST + 500), 1, LAST + 6_000)]],
    { policy: SHORT_LIVED, movesBase: true },
  ),
]
