import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { manualClock } from 'sluicegate'
import { parseConfig } from 'sluicegate-config/read-config.js'
import { until } from 'sluicegate-testkit'
import { readExposition, seriesValue } from 'sluicegate-testkit/service/exposition.js'
import { createLog } from '../log.js'
import { startService } from '../service.js'
import { FrequentKeys } from './frequent-keys.js'

const policies = (a: number, b: number, more = ''): string => `policies:
  a: { algorithm: token-bucket, limit: ${a}, window: 1h }
  b: { algorithm: fixed-window, limit: ${b}, window: 1h }
${more}`
const LIVE = `listen: { port: 0, admin: "127.0.0.1:0" }\n${policies(5, 5, '  jobs: { algorithm: concurrency, limit: 1 }\n  gone: { algorithm: gcra, limit: 1, window: 1s }\n')}`

interface Difference {
  readonly fault: string | null
  readonly policies: { policy: string; same: number; wouldDeny: number; wouldAllow: number; deniedKeys: object[]; allowedKeys: object[] }[]
  readonly onlyCandidate: string[]
  readonly onlyLive: string[]
  readonly notCompared: string[]
}

async function setUp(t: TestContext, candidate: string) {
  const folder = mkdtempSync(join(tmpdir(), 'sluicegate-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const file = join(folder, 'next.yaml')
  const write = (text: string): void => writeFileSync(file, text)
  write(candidate)
  const config = { ...parseConfig(LIVE), candidate: file }
  const service = await startService(config, { clock: manualClock(0), log: createLog('silent'), watchMs: 5 })
  t.after(() => service.stop({ drainMs: 0, finishMs: 0 }))
  const admin = service.urls.get('admin') ?? assert.fail()
  const post = (path: string, body: object) =>
    fetch(admin + path, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body) })
  return {
    service,
    write,
    post,
    diff: async () => (await (await fetch(`${admin}/v1/diff`)).json()) as Difference,
    of: async (policy: string) => {
      const { policies: all } = (await (await fetch(`${admin}/v1/diff`)).json()) as Difference
      const { same, wouldDeny, wouldAllow } = all.find((each) => each.policy === policy) ?? assert.fail()
      return [same, wouldDeny, wouldAllow]
    },
    take: async (policy: string, key: string, times: number): Promise<number[]> => {
      const statuses: number[] = []
      for (let i = 0; i < times; i++) statuses.push((await fetch(`${service.url}/v1/take?policy=${policy}&key=${key}`)).status)
      return statuses
    },
  }
}

test('each live take is decided by the candidate as well, with its own keys, and no answer changes', async (t) => {
  const { take, diff, service } = await setUp(
    t,
    policies(3, 7, '  new: { algorithm: gcra, limit: 1, window: 1s }\n  jobs: { algorithm: concurrency, limit: 9 }\n'),
  )
  assert.deepEqual(await take('a', 'alice', 7), [200, 200, 200, 200, 200, 429, 429])
  assert.deepEqual(await take('b', 'bob', 8), [200, 200, 200, 200, 200, 429, 429, 429])
  const {
    policies: [a, b, ...more],
    ...rest
  } = await diff()
  assert.deepEqual(a, {
    policy: 'a',
    same: 5,
    wouldDeny: 2,
    wouldAllow: 0,
    failed: 0,
    deniedKeys: [{ key: 'alice', count: 2 }],
    allowedKeys: [],
  })
  assert.deepEqual(b, {
    policy: 'b',
    same: 6,
    wouldDeny: 0,
    wouldAllow: 2,
    failed: 0,
    deniedKeys: [],
    allowedKeys: [{ key: 'bob', count: 2 }],
  })
  assert.deepEqual(more, [])
  assert.deepEqual([rest.fault, rest.onlyCandidate, rest.onlyLive, rest.notCompared], [null, ['new'], ['gone'], ['jobs']])
  const series = readExposition(await (await fetch(`${service.url}/metrics`)).text())
  assert.equal(seriesValue(series, 'sluicegate_candidate_decisions_total', { policy: 'a', difference: 'would_deny' }), 2)
  assert.equal(seriesValue(series, 'sluicegate_candidate_failed'), 0)
})

test('a batch that passes as a whole or not at all is one request to the candidate too', async (t) => {
  const { post, of, take } = await setUp(t, policies(2, 5))
  const takes = [
    { policy: 'a', key: 'alice' },
    { policy: 'b', key: 'alice' },
  ]
  for (let i = 0; i < 3; i++) assert.equal((await post('/v1/batch', { all: true, takes })).status, 200)
  assert.deepEqual(
    [await of('a'), await of('b')],
    [
      [2, 1, 0],
      [3, 0, 0],
    ],
  )
  // What the candidate denied as a whole it did not charge: 3 of its 5 are left.
  assert.deepEqual(await take('b', 'alice', 3), [200, 200, 429])
  assert.deepEqual(await of('b'), [5, 0, 1])
})

test('an auth request, a reset and a block reach the candidate', async (t) => {
  const { service, post, of } = await setUp(t, policies(1, 5))
  const auth = () => fetch(`${service.url}/v1/auth?policy=a&key=alice`).then(({ status }) => status)
  assert.deepEqual([await auth(), await auth(), await of('a')], [204, 204, [1, 1, 0]])
  await post('/v1/reset', { policy: 'a', key: 'alice' })
  assert.deepEqual([await auth(), await of('a')], [204, [2, 1, 0]])
  await post('/v1/reset', { policy: 'a', key: 'alice' })
  await post('/v1/block', { policy: 'a', key: 'alice', forMs: 60_000 })
  assert.deepEqual([await auth(), await of('a')], [403, [3, 1, 0]])
})

test('a changed candidate is read again and counts from 0; a fault is reported, and the one before goes on', async (t) => {
  const { write, take, diff, of } = await setUp(t, policies(1, 5))
  await take('a', 'alice', 2)
  write(policies(9, 5))
  await until('the candidate is read', async () => (await of('a'))[1] === 0)
  assert.deepEqual(await take('a', 'alice', 4), [200, 200, 200, 429])
  write('policies: { a: { algorithm: guess } }')
  await until('the fault is reported', async () => (await diff()).fault !== null)
  assert.match((await diff()).fault ?? '', /next\.yaml:1:\d+: policies\.a\.algorithm/)
  await take('a', 'alice', 1)
  assert.deepEqual(await of('a'), [3, 0, 2])
})

test('the service starts with a candidate that has faults, and compares once they are gone', async (t) => {
  const { write, take, diff } = await setUp(t, 'policies: [')
  assert.deepEqual(await take('a', 'alice', 1), [200])
  const { fault, policies: none } = await diff()
  assert.deepEqual([typeof fault, none], ['string', []])
  write(policies(5, 5))
  await until('the candidate is read', async () => (await diff()).fault === null)
  await take('a', 'bob', 1)
  assert.equal((await diff()).policies[0]?.same, 1)
})

test('differences are for the admin surface', async (t) => {
  const { service } = await setUp(t, policies(5, 5))
  assert.equal((await fetch(`${service.url}/v1/diff`)).status, 403)
})

test('frequent keys stay in fixed memory, and a key above its share stays among them', () => {
  const keys = new FrequentKeys(8)
  for (let i = 0; i < 1_000; i++) {
    keys.add(`rare-${i}`)
    if (i % 2 === 0) keys.add('often')
  }
  const top = keys.top(100)
  assert.ok(top.length <= 8)
  assert.equal(top[0]?.key, 'often')
  assert.ok((top[0]?.count ?? 0) <= 500 && (top[0]?.count ?? 0) >= 500 - 1_500 / 8)
})
