import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Decision, manualClock } from 'sluicegate'
import type { Priorities } from 'sluicegate-config/priorities.js'
import { parseConfig } from 'sluicegate-config/read-config.js'
import { Engine, type ServedPolicy } from './engine.js'
import { floorOf } from './priorities.js'

const CLASSES = 'priorities: { critical: 0%, standard: 20%, sheddable: 40% }, max-priority: critical'

function setUp(options: string) {
  const clock = manualClock(0)
  const { policies } = parseConfig(`policies:\n  api: { ${options}, ${CLASSES} }\n`)
  const engine = new Engine(policies, { clock })
  const served = engine.policy('api') as ServedPolicy
  const asked = (name: string | undefined, cap?: string) => ({ name, cap: () => cap })
  const take = (name: string | undefined, cost = 1) => served.take('k', cost, asked(name)) as Decision
  const drain = (name: string, cost = 1): number => {
    let taken = 0
    while (take(name, cost).allowed) taken += cost
    return taken
  }
  return { clock, engine, served, take, drain, asked }
}

const ALGORITHMS = [
  'algorithm: token-bucket, limit: 100, window: 1m',
  'algorithm: gcra, limit: 100, window: 1m, burst: 100',
  'algorithm: fixed-window, limit: 100, window: 1m',
  'algorithm: sliding-window, limit: 100, window: 1m',
  'algorithm: sliding-log, limit: 100, window: 1m',
]

for (const options of ALGORITHMS) {
  test(`the lowest class is denied first, and each leaves exactly what is kept for those above it: ${options}`, (t) => {
    const { engine, drain, take, served, clock } = setUp(options)
    t.after(() => engine.close())
    assert.deepEqual([drain('sheddable'), take('sheddable').remaining], [60, 40])
    assert.deepEqual([drain('standard'), take('standard').remaining], [20, 20])
    assert.equal(take('sheddable').allowed, false)
    assert.equal(drain('critical'), 20)
    assert.equal(take('critical').allowed, false)
    assert.equal(served.counts.allowed, 100)
    assert.equal(served.counts.denied, 5 + 2)
    clock.set(10 * 60_000)
    assert.deepEqual([drain('critical'), drain('standard'), drain('sheddable')], [100, 0, 0])
  })
}

test('a denial says when the same class passes, and a cost that would never leave enough is impossible', (t) => {
  const { engine, drain, take, clock } = setUp('algorithm: token-bucket, limit: 60, window: 1m, burst: 100')
  t.after(() => engine.close())
  assert.equal(drain('critical', 10), 100)
  assert.equal(take('critical').retryAfterMs, 1_000)
  assert.equal(take('standard').retryAfterMs, 21_000)
  assert.equal(take('sheddable').retryAfterMs, 41_000)
  clock.set(40_999)
  assert.equal(take('sheddable').allowed, false)
  clock.set(41_000)
  assert.equal(take('sheddable').allowed, true)
  assert.equal(take('sheddable', 61).retryAfterMs, Number.POSITIVE_INFINITY)
})

test('under a steady overload of all classes the total is that of the policy, and critical requests within their share all pass', (t) => {
  const { engine, take, clock } = setUp('algorithm: token-bucket, limit: 600, window: 1m, burst: 100')
  t.after(() => engine.close())
  const allowed = { critical: 0, standard: 0, sheddable: 0 }
  const SECONDS = 120
  for (let ms = 0; ms < SECONDS * 1_000; ms += 100) {
    clock.set(ms)
    // Ten tokens a second flow in: two of three tenths are critical, and far more of the others come first.
    for (let i = 0; i < 5; i++) for (const name of ['sheddable', 'standard'] as const) if (take(name).allowed) allowed[name]++
    if (ms % 300 !== 0) {
      assert.equal(take('critical').allowed, true, `at ${ms} ms`)
      allowed.critical++
    }
  }
  assert.equal(allowed.critical, 800)
  const total = allowed.critical + allowed.standard + allowed.sheddable
  // The burst down to the share that is kept, and what flowed in.
  assert.ok(total >= 80 + (SECONDS - 1) * 10 && total <= 100 + SECONDS * 10, JSON.stringify(allowed))
  assert.ok(allowed.sheddable < allowed.standard + 60, JSON.stringify(allowed))
})

test('reservations, takes of several policies and permits leave what is kept too', (t) => {
  const { engine, served, asked, take } = setUp('algorithm: token-bucket, limit: 100, window: 1m')
  t.after(() => engine.close())
  const sheddable = asked('sheddable')
  assert.equal((engine.takeAll([{ policy: served, key: 'k', cost: 50, priority: sheddable }]) as Decision[])[0]?.allowed, true)
  const two = [5, 6].map((cost) => ({ policy: served, key: 'k', cost, priority: sheddable }))
  assert.deepEqual(
    (engine.takeAll(two) as Decision[]).map(({ allowed }) => allowed),
    [true, false],
  )
  assert.equal(take('critical').remaining, 49, 'nothing was charged')
  assert.equal((served.reserve('k', 10, sheddable) as { decision: Decision }).decision.allowed, false)
  assert.equal((served.reserve('k', 9, sheddable) as { decision: Decision }).decision.allowed, true)
  const permits = setUp('algorithm: concurrency, limit: 10, ttl: 30s')
  t.after(() => permits.engine.close())
  assert.deepEqual([permits.drain('sheddable'), permits.drain('standard'), permits.drain('critical')], [6, 2, 2])
})

test('a request names no higher class than its source allows; one that names none, or an unknown one, is of the default class', () => {
  const reserved = new Map([
    ['critical', 0],
    ['standard', 0.2],
    ['sheddable', 0.4],
  ])
  const floor = (max: string, name: string | undefined, cap?: string): number => {
    const priorities: Priorities = { reserved, default: 'standard', max }
    return floorOf(priorities, { name, cap: () => cap }, 100)
  }
  assert.deepEqual([floor('standard', 'critical'), floor('standard', 'sheddable')], [20, 40])
  assert.deepEqual([floor('critical', 'critical'), floor('critical', undefined), floor('critical', 'x')], [0, 20, 20])
  assert.deepEqual([floor('standard', 'critical', 'critical'), floor('critical', 'critical', 'sheddable')], [0, 40])
  assert.deepEqual([floor('critical', undefined, 'sheddable'), floor('standard', 'critical', 'unknown')], [40, 20])
  assert.equal(floorOf({ reserved, default: 'standard', max: 'critical' }, undefined, 7), 2, 'rounded up')
  for (const name of ['__proto__', 'constructor', 'toString']) assert.equal(floor('critical', name), 20)
})
