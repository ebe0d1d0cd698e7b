import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fixedWindow } from 'sluicegate'
import { FORMS, type Form, LOG, PACKED } from './forms.js'
import { counted, limited } from './judge.js'
import { day, type Traffic } from './traffic.js'

const WINDOW_MS = 60_000
const FIXED: Form = {
  name: 'fixed window',
  tokensPerRequest: 1,
  policy: (requests, windowMs) => fixedWindow({ limit: requests, window: windowMs }),
}
const TRAFFIC = day({ seed: 5, requests: 60_000, sources: 500, floodShare: 0.3 })

test('the sliding log is never found wrong', () => {
  for (const limit of [1, 10, 100]) {
    const { over, wronglyAllowed, wronglyDenied, sourcesMissed, sourcesDeniedWithoutCause, mostAdmitted } = limited(
      TRAFFIC,
      LOG,
      limit,
      WINDOW_MS,
    )
    assert.ok(over > 0)
    assert.deepEqual(
      { wronglyAllowed, wronglyDenied, sourcesMissed, sourcesDeniedWithoutCause },
      {
        wronglyAllowed: 0,
        wronglyDenied: 0,
        sourcesMissed: 0,
        sourcesDeniedWithoutCause: 0,
      },
    )
    assert.equal(mostAdmitted, limit)
  }
})

test('what a fixed window lets through around its end is found, to the request', () => {
  const judged = limited(requestsAt([...times(10, 59_990), ...times(10, 60_000), ...times(3, 60_020)]), FIXED, 10, WINDOW_MS)
  assert.deepEqual([judged.allowed, judged.over, judged.wronglyAllowed, judged.wronglyDenied, judged.mostAdmitted], [20, 13, 10, 0, 20])
  assert.deepEqual([judged.sourcesOver, judged.sourcesMissed], [1, 0])
})

test('counts of all requests are judged against each limit, and their differences averaged', () => {
  // Ten at the very start of a window, none in the rest of it, one a quarter of a window later: 10 * 3/4 are believed, rounded up, and none is there.
  const traffic = requestsAt([...times(10, 0), 75_000])
  const { judgements, difference } = counted(traffic, PACKED, [5, 8, 9], WINDOW_MS)
  assert.deepEqual(
    judgements.map(({ wronglyDenied, over }) => [wronglyDenied, over]),
    [
      [1, 5],
      [1, 2],
      [0, 1],
    ],
  )
  assert.equal(difference.ofAll, 8 / 11)
  assert.equal(difference.weighted, 8 / (55 + 1))
})

test('the packed and the wide form judge all requests alike, whatever the tokens a request takes', () => {
  const [packed, wide] = FORMS.map((form) => ({ ...limited(TRAFFIC, form, 30, WINDOW_MS), form: '' }))
  assert.deepEqual(packed, wide)
  assert.ok(packed !== undefined && packed.wronglyAllowed > 0 && packed.wronglyDenied > 0 && packed.mostAdmitted < 60)
})

/** One source, at these milliseconds from the start of a window. */
function requestsAt(ms: readonly number[]): Traffic {
  const startMs = Date.UTC(2026, 0, 1)
  return { timesUs: Float64Array.from(ms, (at) => (startMs + at) * 1000), asking: new Uint32Array(ms.length), sources: 1 }
}

function times(count: number, ms: number): number[] {
  return Array.from({ length: count }, () => ms)
}
