import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseConfig } from 'sluicegate-config/read-config.js'
import { arrivalsOf, type Demand, MOST_ARRIVALS } from './arrivals.js'
import { ALGORITHMS, decide, decisionsCsv, policyOf, type RatePolicy } from './decide.js'
import { EXAMPLES } from './examples.js'
import { OpenWork, PIECES } from './open-work.js'
import { DEFAULT_STATE, queryOf, stateOf } from './playground-state.js'
import { policyCode } from './policy-code.js'
import { readLog } from './read-log.js'
import { binsOf, budgetAt, meaningOf, readingAt } from './summary.js'

const DEMAND: Demand = { source: 'poisson', rate: 50, size: 10, seconds: 100, seed: 9, clicks: [] }

test('arrivals are in order, equal for equal seeds, and as many as the rate says', () => {
  const arrivals = arrivalsOf(DEMAND)
  assert.deepEqual(arrivals, arrivalsOf(DEMAND))
  assert.notDeepEqual(arrivals, arrivalsOf({ ...DEMAND, seed: 10 }))
  assert.ok(arrivals.every(({ atMs }, i) => atMs >= (arrivals[i - 1]?.atMs ?? 0) && atMs < 100_000))
  // Five standard deviations of 5,000.
  assert.ok(Math.abs(arrivals.length - 5000) < 360, `${arrivals.length}`)
  assert.equal(arrivalsOf({ ...DEMAND, source: 'steady' }).length, 5000)
  assert.equal(arrivalsOf({ ...DEMAND, source: 'bursts', rate: 1 }).length, 100)
  assert.equal(arrivalsOf({ ...DEMAND, rate: 1000 }).length, MOST_ARRIVALS)
})

test('what is admitted never exceeds the budget that is drawn, whatever the policy', () => {
  for (const algorithm of ALGORITHMS) {
    const rate = { algorithm, limit: 30, window: '10s', burst: 12 }
    const arrivals = arrivalsOf(DEMAND)
    const { decisions } = decide(rate, arrivals, 100)
    let admitted = 0
    for (const [i, { atMs }] of arrivals.entries()) {
      if (decisions[i]?.allowed) admitted++
      assert.ok(admitted <= budgetAt(rate, atMs) + 1e-6, `${algorithm}: ${admitted} at ${atMs} ms`)
    }
    assert.ok(admitted >= 280, `${algorithm}: ${admitted}`)
  }
})

test('bars count every request once, and a reading says what was known at its time', () => {
  const arrivals = [0, 1, 2, 600].map((atMs) => ({ atMs, key: 'you' }))
  const outcome = decide({ algorithm: 'token-bucket', limit: 2, window: '1s', burst: 2 }, arrivals, 1, 11)
  assert.deepEqual(binsOf(arrivals, outcome.decisions, 1, 2), [
    { allowed: 2, denied: 1 },
    { allowed: 1, denied: 0 },
  ])
  assert.deepEqual(readingAt(100, arrivals, outcome, 1), { allowed: 2, denied: 1, left: 0, retryAfterMs: 498 })
  assert.deepEqual(readingAt(1000, arrivals, outcome, 1), { allowed: 3, denied: 1, left: 1, retryAfterMs: undefined })
})

test('an access log becomes arrivals by client', () => {
  const { arrivals, skipped, seconds } = readLog(`
    203.0.113.9 - - [10/Oct/2025:13:55:36 +0000] "GET / HTTP/1.1" 200 512
    no time here
    198.51.100.7 - - [10/Oct/2025:15:55:39 +0200] "GET /login HTTP/1.1" 200 90
    {"time":"2025-10-10T13:55:37.250Z","remote_addr":"203.0.113.9"}`)
  assert.deepEqual(arrivals, [
    { atMs: 0, key: '203.0.113.9' },
    { atMs: 1250, key: '203.0.113.9' },
    { atMs: 3000, key: '198.51.100.7' },
  ])
  assert.deepEqual([skipped, seconds], [1, 4])
})

test('decisions are written a line each', () => {
  const arrivals = [0, 1].map((atMs) => ({ atMs, key: 'a "b"' }))
  const { decisions } = decide({ algorithm: 'gcra', limit: 1, window: '1s', burst: 1 }, arrivals, 1)
  assert.equal(
    decisionsCsv(arrivals, decisions),
    'at_ms,key,allowed,remaining,retry_after_ms,reset_after_ms\n0,"a ""b""",true,0,0,1000\n1,"a ""b""",false,0,999,999\n',
  )
})

test('the examples show what they say', () => {
  const [burst, edge] = EXAMPLES
  const allowed = (i: 'first' | 'second', example = burst): number => {
    const { state } = example ?? assert.fail()
    const { decisions } = decide(state[i] ?? assert.fail(), arrivalsOf(state.demand), state.demand.seconds)
    return decisions.filter((decision) => decision.allowed).length
  }
  assert.equal(allowed('first'), 60)
  assert.equal(allowed('second'), 12)
  assert.ok(allowed('first', edge) > allowed('second', edge))
  for (const { state } of EXAMPLES) assert.ok(meaningOf(state.first).length > 20)
})

test('open work holds what it may cost, spends it piece by piece, and frees nothing but the rest', () => {
  const works = new OpenWork({ algorithm: 'fixed-window', limit: 20, window: '1h', burst: 20 })
  assert.deepEqual([works.open(), works.open(), works.open()], [true, true, false])
  assert.deepEqual(works.reading(), { spent: 0, held: 16, free: 4, open: 2, cut: 0 })
  works.pass(200)
  assert.deepEqual(works.reading(), { spent: 2, held: 14, free: 4, open: 2, cut: 0 })
  for (let i = 1; i < 2 * PIECES; i++) works.pass(200)
  assert.deepEqual(works.reading(), { spent: 20, held: 0, free: 0, open: 0, cut: 2 })
  works.close()
})

test('a log of 50 MB is cut at a line, and says so; one that fits does not', () => {
  const line = '192.0.2.1 - - [10/Oct/2025:13:55:01 +0000] "GET / HTTP/1.1" 200 5\n'
  const { arrivals, isCut, skipped } = readLog(line.repeat(Math.ceil(50e6 / line.length)))
  assert.deepEqual([arrivals.length, isCut, skipped], [MOST_ARRIVALS, true, 0])
  assert.equal(readLog(line.repeat(10)).isCut, false)
  assert.equal(readLog(line.repeat(MOST_ARRIVALS + 1)).isCut, true)
})

test('an address leads back to what was shown', () => {
  for (const { state } of EXAMPLES) assert.equal(queryOf(stateOf(queryOf(state))), queryOf(state))
  const clicked = { ...DEFAULT_STATE, demand: { ...DEFAULT_STATE.demand, source: 'clicks' as const, clicks: [1, 250, 251] } }
  assert.deepEqual(stateOf(queryOf(clicked)).demand.clicks, [1, 250, 251])
})

test('an address can be read', () => {
  const query = queryOf(DEFAULT_STATE)
  assert.equal(query, 'policy=token-bucket,10,10s,10&demand=poisson&rate=2&seed=1&seconds=60')
})

test('an address without numbers, with a script, or with a flood of clicks does no harm', () => {
  for (const policy of ['token-bucket,10,10s,NaN', 'gcra,NaN,1s', 'gcra,10,<script>', 'gcra,10,1s,', '<script>,1,1s']) {
    assert.deepEqual(stateOf(new URLSearchParams({ policy }).toString()).first, DEFAULT_STATE.first, policy)
  }
  const flood = Array.from({ length: MOST_ARRIVALS + 5 }, (_, i) => i + 1).join('-')
  assert.equal(stateOf(`demand=clicks&clicks=${flood}`).demand.clicks.length, MOST_ARRIVALS)
})

test('what an address says wrong is as at first', () => {
  const query = 'policy=leaky,10,10s&beside=gcra,0,1s&demand=flood&rate=-1&seconds=1e9&clicks=a-5'
  const { first, second, demand } = stateOf(query)
  assert.deepEqual(first, DEFAULT_STATE.first)
  assert.equal(second, undefined)
  assert.deepEqual({ ...demand, clicks: [] }, DEFAULT_STATE.demand)
})

const RATES: readonly RatePolicy[] = ALGORITHMS.map((algorithm) => ({ algorithm, limit: 10, window: '30s', burst: 4 }))

/** The numbers of a policy, which its name is no part of. */
function numbersOf({ algorithm, limit, windowMs, burst }: ReturnType<typeof policyOf>) {
  return { algorithm, limit, windowMs, burst }
}

for (const rate of RATES) {
  const [typeScript, service, envoy] = policyCode([rate])

  test(`the service reads the YAML of ${rate.algorithm} as the same policy`, () => {
    const [served] = parseConfig(service?.text ?? '').policies
    assert.deepEqual(numbersOf(served?.policy as never), numbersOf(policyOf(rate)))
  })

  test(`the service reads Envoy's YAML of ${rate.algorithm}`, () => {
    assert.ok(parseConfig(envoy?.text ?? ''))
    assert.throws(() => parseConfig((envoy?.text ?? '').replace('rate_limit', 'rate_limits')))
  })

  test(`the program of ${rate.algorithm} runs`, async () => {
    const text = `${(typeScript?.text ?? '').replace("'sluicegate'", `'${import.meta.resolve('sluicegate')}'`)}\nexport { limiter }`
    const { limiter } = await import(`data:text/javascript,${encodeURIComponent(text)}`)
    assert.deepEqual(numbersOf(limiter.policy), numbersOf(policyOf(rate)))
    limiter.close()
  })
}

test('two policies have a name each', () => {
  const [typeScript, service] = policyCode(RATES.slice(0, 2))
  assert.match(typeScript?.text ?? '', /const second = createLimiter\(gcra/)
  assert.equal(parseConfig(service?.text ?? '').policies.length, 2)
})
