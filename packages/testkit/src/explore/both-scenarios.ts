import { A, B, C, peek, penalize, refund, release, reset, take, takeBoth, update } from './call.js'
import { counting } from './explored-policy.js'
import { askOf, type Scenario } from './scenario.js'

// Takes of two keys at once: both, or neither.

const both = askOf('both', { lines: 2 })
const WIDE = counting('WIDE', 3, 10_000)
const LOG = counting('LOG', 3, 10_000)
const PERMITS = counting('CONCURRENCY', 2, 10_000)
const known = [take(A), take(B)]

export const BOTH: readonly Scenario[] = [
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
    policy: LOG,
    encodings: [{ encoding: 'LOG' }],
  }),
  both('A and B | A | B, logs begin anew', [...known, take(A, 11_000)], [[takeBoth(A, B, 22_000)], [take(A, 12_000)], [take(B, 22_500)]], {
    policy: LOG,
    encodings: [{ encoding: 'LOG' }],
  }),
  both('A and B | larger logs | A', known, [[takeBoth(A, B, 11_000)], [update(counting('LOG', 5, 10_000), 11_000)], [take(A, 11_000)]], {
    policy: LOG,
    encodings: [{ encoding: 'LOG' }],
  }),
  both('A and B | B and A | A, release, permits', [take(A)], [[takeBoth(A, B)], [takeBoth(B, A)], [take(A), release(A, 10_000)]], {
    policy: PERMITS,
    encodings: [{}],
  }),
]
