import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { test } from 'node:test'
import { allOf, manualClock, StoreError, slidingLog, tokenBucket } from 'sluicegate'
import { readExposition, seriesValue } from 'sluicegate-testkit/service/exposition.js'
import { Engine } from './engine/engine.js'
import { LATENCY_BOUNDS_S } from './engine/outcome.js'
import { measuresOf } from './measures/measures.js'
import { createMetrics } from './metrics.js'

const NO_TRAFFIC = { all: () => [] }

function setUp(name = 'burst') {
  const policy = tokenBucket({ name, limit: 2, window: '1m' })
  const engine = new Engine([{ policy, maxKeys: 100, onFull: 'evict' }], { clock: manualClock(0) })
  const served = engine.policy(name) ?? assert.fail()
  const metrics = createMetrics(measuresOf(engine, NO_TRAFFIC, '1.2.3'))
  return { engine, served, metrics, read: async () => readExposition(String(await metrics.render())) }
}

test('the exposition conforms strictly to the text format', async () => {
  const { served, metrics, read } = setUp()
  served.take('alice', 1)
  assert.equal(metrics.contentType, 'text/plain; version=0.0.4; charset=utf-8')
  assert.ok((await read()).length > 40)
})

test('promtool finds no fault in the exposition', async () => {
  const { served, metrics, engine } = setUp()
  for (let i = 0; i < 4; i++) served.take('alice', 1)
  engine.callRates.throttle('k', { maxBurst: 0, count: 1, periodS: 1 }, 1)
  const { status, stdout, stderr } = spawnSync('promtool', ['check', 'metrics'], {
    input: String(await metrics.render()),
    encoding: 'utf8',
  })
  assert.deepEqual([status, stdout, stderr], [0, '', ''])
})

test('a strict reader refuses anything but the text format', () => {
  const head = '# HELP a_total A.\n# TYPE a_total counter\n'
  assert.equal(readExposition(`${head}a_total{x="1"} 1\n`).length, 1)
  const broken = [`${head}a_total 1`, 'a_total 1\n', `${head}a_total -1\n`, `${head}a_total{x=1} 1\n`, `${head}a_total 1\na_total 1\n`]
  const disorder = [
    `${head}b 1\n`,
    `${head}a_total one\n`,
    `${head}# TYPE a_total gauge\n`,
    '# HELP a A.\n# TYPE a counter\na 1\n',
    `${head.replace(' counter', ' gauge')}a_total 1\n`,
  ]
  const histogram = '# HELP h H.\n# TYPE h histogram\nh_bucket{le="1"} 2\nh_bucket{le="+Inf"} 1\nh_sum 1\nh_count 1\n'
  for (const text of [...broken, ...disorder, histogram]) assert.throws(() => readExposition(text), Error, text)
})

test('allowed, denied and impossible are three series', async () => {
  const { served, read } = setUp()
  for (const cost of [1, 1, 1, 1, 3, 1]) served.take('alice', cost)
  const samples = await read()
  const decisions = (outcome: string): number => seriesValue(samples, 'sluicegate_decisions_total', { policy: 'burst', outcome })
  assert.deepEqual([decisions('allowed'), decisions('denied'), decisions('impossible')], [2, 3, 1])
})

test('an outage is a series of its own', async () => {
  const { served, read } = setUp()
  served.errors.set('CONTENTION', 2)
  const samples = await read()
  assert.equal(seriesValue(samples, 'sluicegate_decision_errors_total', { policy: 'burst', code: 'CONTENTION' }), 2)
  assert.equal(seriesValue(samples, 'sluicegate_decisions_total', { policy: 'burst', outcome: 'denied' }), 0)
})

test('the latency histogram counts every take, in buckets that are cumulative', async () => {
  const { engine, served, read } = setUp()
  for (let i = 0; i < 20; i++) served.take('alice', 1)
  engine.latency.observe(5) // above every bound
  const samples = await read()
  assert.equal(seriesValue(samples, 'sluicegate_decision_duration_seconds_count'), 21)
  const last = String(LATENCY_BOUNDS_S.at(-1))
  assert.equal(seriesValue(samples, 'sluicegate_decision_duration_seconds_bucket', { le: last }), 20)
  assert.equal(seriesValue(samples, 'sluicegate_decision_duration_seconds_bucket', { le: '+Inf' }), 21)
})

test('a take of several policies is one observation of the latency, whether it passes or not; a look is none', async () => {
  const policies = ['one', 'two'].map((name) => tokenBucket({ name, limit: 2, window: '1m' }))
  const engine = new Engine(
    policies.map((policy) => ({ policy, maxKeys: 100, onFull: 'evict' })),
    { clock: manualClock(0) },
  )
  const parts = Array.from(engine.policies, (policy) => ({ policy, key: 'alice', cost: 2 }))
  for (let i = 0; i < 2; i++) engine.takeAll(parts)
  engine.takeAll(parts.map((part) => ({ ...part, peekOnly: true })))
  assert.equal(engine.latency.count, 2)
  engine.reservations.reserve(parts, 1_000)
  assert.equal(engine.latency.count, 3)
})

test('every call with its own rate is in the histogram, also those that are not timed themselves', () => {
  const engine = new Engine([], { clock: manualClock(0) })
  for (let i = 0; i < 500; i++) engine.callRates.throttle('k', { maxBurst: 0, count: 1, periodS: 60 }, i % 5 === 0 ? 0 : 1)
  assert.equal(engine.latency.count, 400)
  assert.ok(engine.latency.sumS > 0)
})

test('calls with their own rate are timed, and counted by outcome, source and key', async () => {
  const clock = manualClock(0)
  const engine = new Engine([], { clock, hotKeys: 10 })
  const rate = { maxBurst: 0, count: 1, periodS: 60 }
  const bytes = (text: string): string => Buffer.from(text).toString('latin1')
  for (const key of ['zoë', 'zoë', 'bob']) engine.callRates.throttle(bytes(key), rate, 1)
  engine.callRates.throttle(bytes('zoë'), rate, 0)
  engine.callRates.throttle('\xff', rate, 2)
  engine.callRates.errors.set('CONTENTION', 3)
  const samples = readExposition(String(await createMetrics(measuresOf(engine, NO_TRAFFIC, '1.2.3')).render()))
  assert.equal(seriesValue(samples, 'sluicegate_throttle_errors_total', { code: 'CONTENTION' }), 3)
  const decisions = (outcome: string): number => seriesValue(samples, 'sluicegate_throttle_decisions_total', { outcome })
  assert.deepEqual([decisions('allowed'), decisions('denied'), decisions('impossible')], [2, 1, 1])
  assert.equal(seriesValue(samples, 'sluicegate_throttle_sources_total', { source: 'memory' }), 4)
  assert.equal(seriesValue(samples, 'sluicegate_decision_duration_seconds_count'), 4)
  const { demand, denials } = engine.callRates.hotKeys(10)
  assert.deepEqual(
    [demand, denials].map((list) => list.map(({ key, count }) => `${key} ${count}`)),
    [
      ['zoë 2', 'bob 1', '\xff 1'],
      ['zoë 1', '\xff 1'],
    ],
  )
  engine.callRates.close()
  assert.throws(() => engine.callRates.throttle('k', rate, 1), StoreError)
  assert.equal(engine.callRates.errors.get('CLOSED'), 1)
})

test('keys, evictions, refusals and memory are reported for each policy', async () => {
  const { served, read } = setUp()
  served.take('alice', 1)
  served.take('bob', 1)
  served.peek('carol', 1)
  const samples = await read()
  const labels = { policy: 'burst' }
  assert.equal(seriesValue(samples, 'sluicegate_keys', labels), 2)
  assert.equal(seriesValue(samples, 'sluicegate_peeks_total', labels), 1)
  assert.equal(seriesValue(samples, 'sluicegate_evictions_total', labels), 0)
  assert.equal(seriesValue(samples, 'sluicegate_refusals_total', labels), 0)
  assert.equal(seriesValue(samples, 'sluicegate_overflows_total', labels), 0)
  assert.equal(seriesValue(samples, 'sluicegate_memory_bytes', labels), served.stats().memoryBytes)
})

test('denials of an all-of are reported by their binding part', async () => {
  const parts = [tokenBucket({ name: 'burst', limit: 5, window: '1s' }), slidingLog({ name: 'log', limit: 2, window: '1m' })]
  const policy = allOf(parts, { name: 'both' })
  const engine = new Engine([{ policy, maxKeys: 100, onFull: 'evict' }], { clock: manualClock(0) })
  for (let i = 0; i < 5; i++) engine.policy('both')?.take('alice', 1)
  const samples = readExposition(String(await createMetrics(measuresOf(engine, NO_TRAFFIC, '1.2.3')).render()))
  const denials = (part: string): number => seriesValue(samples, 'sluicegate_part_denials_total', { policy: 'both', part })
  assert.deepEqual([denials('burst'), denials('log')], [0, 3])
  assert.equal(seriesValue(samples, 'sluicegate_decisions_total', { policy: 'both', outcome: 'denied' }), 3)
  assert.equal(seriesValue(samples, 'sluicegate_keys', { policy: 'both' }), 1)
})

test('version and process are there', async () => {
  const samples = await setUp().read()
  assert.equal(seriesValue(samples, 'sluicegate_build_info', { version: '1.2.3' }), 1)
  assert.ok(seriesValue(samples, 'process_resident_memory_bytes') > 0)
})

test('no key is ever in the exposition', async () => {
  const { served, metrics } = setUp()
  for (let i = 0; i < 50; i++) served.take('secret-key-of-alice', 1)
  assert.doesNotMatch(String(await metrics.render()), /secret-key|alice/)
})

test('a policy name with quotes and backslashes is escaped', async () => {
  const name = 'a "b" \\ c'
  const { served, read } = setUp(name)
  served.take('alice', 1)
  assert.equal(seriesValue(await read(), 'sluicegate_decisions_total', { policy: name, outcome: 'allowed' }), 1)
})
