import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { manualClock } from 'sluicegate'
import { parseConfig } from 'sluicegate-config/read-config.js'
import { envoyDomains } from 'sluicegate-testkit/service/running-service.js'
import { Engine } from '../engine/engine.js'
import type { Assignment } from './assignment.js'
import { longestMs } from './quota-budget.js'
import { QuotaService } from './quota-service.js'

const TTL_S = 8
const fileOf = (limit: string): string => `domain: files\ndescriptors: [{ key: user, rate_limit: { ${limit} } }]\n`
const UNLIMITED = fileOf('unlimited: true')
const CLOSED = fileOf('unit: second, requests_per_unit: 0')
const LIMITED = fileOf('unit: second, requests_per_unit: 100')
const USER = [{ key: 'user', value: 'eve' }]

/** A service with one file of Envoy, in whose first time to live nothing was assigned. */
function setUp(t: TestContext, file: string) {
  const clock = manualClock(0)
  const domains = envoyDomains(file)
  const engine = new Engine(
    domains.flatMap(({ policies }) => policies),
    { clock },
  )
  const times = { ttlSeconds: TTL_S, idleMs: 60_000 }
  const quotas = new QuotaService({ engine, config: { rules: undefined, domains }, times, nowMs: () => clock.nowMs() })
  t.after(() => quotas.stop())
  const use = (text: string): void => {
    const next = envoyDomains(text)
    engine.prepare(next.flatMap(({ policies }) => policies))()
    quotas.use({ rules: undefined, domains: next })
  }
  return { clock, quotas, use }
}

/** Goes through all steps. */
function all(steps: Iterator<unknown>): void {
  while (!steps.next().done);
}

/** A data plane whose messages arrive at once. */
function planeOf(quotas: QuotaService, address = '192.0.2.1') {
  const assignments: Assignment[] = []
  const ends: string[] = []
  const stream = quotas.open({
    host: '192.0.2.1',
    plane: address,
    send(actions, onDelivered) {
      assignments.push(...actions.map(({ assignment }) => assignment))
      onDelivered()
    },
    end: (reason) => ends.push(reason),
  })
  assert.ok(stream !== undefined)
  const report = (allowed = 0, entries = USER): void => {
    all(stream.report('files', [{ entries, allowed, denied: 0 }]))
    quotas.tick()
  }
  return { assignments, ends, stream, report }
}

const kinds = (assignments: readonly Assignment[]): string[] => assignments.map(({ kind }) => kind)

test('a rule without a limit allows all, one of 0 denies all, and both are renewed with reports', (t) => {
  for (const [file, kind] of [
    [UNLIMITED, 'allow'],
    [CLOSED, 'deny'],
  ] as const) {
    const { clock, quotas } = setUp(t, file)
    const { assignments, report } = planeOf(quotas)
    report()
    report()
    assert.deepEqual(assignments, [{ kind, ttlSeconds: TTL_S }], 'at once, and not again')
    clock.advance((TTL_S * 1_000) / 8)
    report()
    assert.deepEqual(kinds(assignments), [kind, kind])
  }
})

test('a service that starts assigns no tokens until the assignments of before have ended', (t) => {
  const { clock, quotas } = setUp(t, LIMITED)
  const { assignments, report } = planeOf(quotas)
  report()
  clock.set(longestMs(TTL_S) - 1)
  report(50)
  assert.deepEqual(assignments, [])
  clock.advance(1_000)
  report(50)
  clock.advance(1_000)
  report(50)
  assert.ok(kinds(assignments).includes('tokens'), kinds(assignments).join())
})

test('what was unlimited gets tokens when its last assignment has ended', (t) => {
  const { clock, quotas, use } = setUp(t, UNLIMITED)
  clock.set(longestMs(TTL_S))
  const { assignments, report } = planeOf(quotas)
  report()
  use(LIMITED)
  quotas.tick()
  const changedMs = clock.nowMs()
  while (clock.nowMs() < changedMs + longestMs(TTL_S) - 500) {
    report(100)
    clock.advance(500)
  }
  assert.deepEqual(kinds(assignments), ['allow'])
  for (let i = 0; i < 6; i++) {
    clock.advance(500)
    report(100)
  }
  assert.ok(kinds(assignments).includes('tokens'), kinds(assignments).join())
})

test('a bucket without requests is abandoned, and with a request begins anew', (t) => {
  const { clock, quotas } = setUp(t, LIMITED)
  clock.set(longestMs(TTL_S))
  const { assignments, report } = planeOf(quotas)
  for (let seconds = 0; seconds <= 62; seconds += 2) {
    report()
    clock.advance(2_000)
  }
  assert.equal(kinds(assignments).filter((kind) => kind === 'abandon').length, 1)
  assert.equal(quotas.counts.of('files.user').returned.abandoned, 1)
  report(10)
  quotas.tick()
  assert.equal(kinds(assignments).at(-1), 'tokens')
})

test('a data plane that opens another stream has its part again, and two with one address are not taken for each other', (t) => {
  const { clock, quotas } = setUp(t, LIMITED)
  clock.set(longestMs(TTL_S))
  const counts = quotas.counts.of('files.user').returned
  const first = planeOf(quotas, 'a')
  const shown = (): number => [...quotas.figures()][0]?.buckets ?? 0
  first.report()
  for (let i = 0; i < 20; i++) {
    clock.advance(100)
    first.stream.closed()
    Object.assign(first, planeOf(quotas, 'a'))
    first.report(1)
  }
  assert.deepEqual([counts.reconnected, shown()], [20, 1])
  const second = planeOf(quotas, 'a')
  second.report()
  second.stream.closed()
  planeOf(quotas, 'a').report()
  quotas.tick()
  clock.advance(1_000)
  quotas.tick()
  assert.deepEqual([counts.reconnected, shown()], [20, 3])
})

test('buckets without a rule cost ten times the credit of a stream', (t) => {
  const { quotas } = setUp(t, LIMITED)
  const { ends, stream } = planeOf(quotas)
  const unknown = Array.from({ length: 999 }, (_, i) => ({ entries: [{ key: 'unknown', value: `${i}` }], allowed: 0, denied: 0 }))
  all(stream.report('files', unknown))
  all(stream.report('files', unknown))
  assert.deepEqual(ends, [])
  all(stream.report('files', unknown))
  assert.deepEqual([ends, quotas.counts.refused.no_rule, quotas.streams], [['too_fast'], 1_998, 0])
})

test('one budget has a bounded number of buckets, half of them of one host, and those of a stream that is over have their places until they end', (t) => {
  const clock = manualClock(0)
  const config = parseConfig(`policies: { shared: { algorithm: token-bucket, limit: 100, window: 1s } }
quotas: { ttl: ${TTL_S}s, rules: [{ policy: shared, key: [] }] }`)
  const quotas = new QuotaService({
    engine: new Engine(config.policies, { clock }),
    config: { rules: config.quotaRules, domains: [] },
    times: config.quotas,
    nowMs: () => clock.nowMs(),
    bounds: { maxBucketsPerBudget: 4 },
  })
  t.after(() => quotas.stop())
  clock.advance(longestMs(TTL_S))
  const held = (): number => [...quotas.figures()].reduce((sum, { buckets }) => sum + buckets, 0)
  const joined = (host: string) => {
    const stream = quotas.open({ host, plane: `${host} ${quotas.streams}`, send: (_, onDelivered) => onDelivered(), end: () => undefined })
    for (const id of ['a', 'b', 'c']) if (stream) all(stream.report('d', [{ entries: [{ key: 'id', value: id }], allowed: 1, denied: 0 }]))
    clock.advance(1_000)
    quotas.tick()
    return stream
  }
  const greedy = joined('192.0.2.1')
  assert.deepEqual([held(), quotas.counts.refused.too_many_buckets], [2, 1])
  joined('192.0.2.2')
  assert.deepEqual([held(), quotas.counts.refused.too_many_buckets], [4, 2])
  greedy?.closed()
  joined('192.0.2.1')
  assert.deepEqual([held(), quotas.counts.refused.too_many_buckets], [4, 5])
  clock.advance(longestMs(TTL_S))
  quotas.tick()
  joined('192.0.2.1')
  assert.equal(quotas.counts.refused.too_many_buckets, 6)
})
