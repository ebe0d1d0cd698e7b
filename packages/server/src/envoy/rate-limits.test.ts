import assert from 'node:assert/strict'
import { test } from 'node:test'
import { manualClock } from 'sluicegate'
import { atOnce, envoyDomains } from 'sluicegate-testkit/service/running-service.js'
import { Engine } from '../engine/engine.js'
import type { Descriptor, LimitRequest, LimitResponse } from './limit-request.js'
import { DEFAULT_LIMIT_SETTINGS, type LimitSettings } from './limit-settings.js'
import { Overrides } from './overrides.js'
import { RateLimits } from './rate-limits.js'

const HEADERS = { limit: 'L', remaining: 'R', reset: 'S' }

/** The text `user=alice path=/a` as a descriptor. */
function descriptor(entries: string, more: Partial<Descriptor> = {}): Descriptor {
  const list = entries.split(' ').map((entry) => {
    const [key = '', value = ''] = entry.split('=')
    return { key, value }
  })
  return { entries: list, limit: undefined, hitsAddend: undefined, isNegativeHits: false, ...more }
}

function setUp(descriptors: string, settings: Partial<LimitSettings> = {}) {
  const domains = envoyDomains(`domain: edge\n${descriptors}`)
  // 12 s into a minute.
  const clock = manualClock(12_000)
  const engine = new Engine(
    domains.flatMap(({ policies }) => policies),
    { clock },
  )
  const limits = new RateLimits(engine, domains, { ...DEFAULT_LIMIT_SETTINGS, ...settings }, () => clock.nowMs())
  const request = (list: readonly (string | Descriptor)[], hitsAddend = 0): LimitRequest => ({
    domain: 'edge',
    descriptors: list.map((one) => (typeof one === 'string' ? descriptor(one) : one)),
    hitsAddend,
  })
  const send = (...list: (string | Descriptor)[]): LimitResponse => atOnce(limits.decide(request(list)))
  const isOver = (...list: (string | Descriptor)[]): boolean => send(...list).over
  const left = (one: string): number | undefined => send(descriptor(one, { hitsAddend: 0 })).statuses[0]?.remaining
  return { clock, engine, limits, request, send, isOver, left }
}

const USERS = `descriptors:
  - { key: user, rate_limit: { unit: minute, requests_per_unit: 3 } }
  - { key: team, rate_limit: { unit: minute, requests_per_unit: 2, name: teams } }
`

test('a response has the overall verdict and a status for each descriptor, in their order', () => {
  const { send } = setUp(USERS)
  assert.deepEqual(send('team=blue', 'nothing=1', 'user=alice'), {
    over: false,
    statuses: [
      { over: false, limit: { requestsPerUnit: 2, unit: 2, name: 'teams' }, remaining: 1, resetS: 48 },
      { over: false, limit: undefined, remaining: 0, resetS: 0 },
      { over: false, limit: { requestsPerUnit: 3, unit: 2, name: '' }, remaining: 2, resetS: 48 },
    ],
    headers: [],
    metadata: undefined,
  })
})

test('addresses of one network, and of one client with many ports, share a budget; other values have their own', () => {
  const { isOver } = setUp(`descriptors:
  - { key: remote_address, rate_limit: { unit: minute, requests_per_unit: 2 } }
  - { key: site, ipv6_subnet: 48, rate_limit: { unit: minute, requests_per_unit: 2 } }
`)
  const over = (key: string, ...values: string[]) => values.filter((value) => isOver(`${key}=${value}`)).length
  assert.equal(over('remote_address', ...Array.from({ length: 200 }, (_, i) => `2001:db8:0:4217::${i.toString(16)}`)), 198)
  assert.equal(over('remote_address', '203.0.113.7:40001', '203.0.113.7:40002', '::ffff:203.0.113.7', '203.0.113.7'), 2)
  assert.equal(over('remote_address', 'cafe::1', 'cafe::2', 'cafe::3', '2001:db8:0:4300::1'), 0)
  assert.equal(over('site', '2001:db8:0:1::1', '2001:db8:0:ffff::1', '2001:db8:0:2::1'), 1)
  const own = { requestsPerUnit: 2, unit: 2 }
  const carried = [1, 2, 3].map((i) => descriptor(`ip=2001:db8:0:4217::${i}`, { limit: own }))
  assert.deepEqual(
    carried.map((one) => isOver(one)),
    [false, false, true],
  )
})

test('a request over one limit charges none: denied hits and those beside them stay', () => {
  const { isOver, send, left } = setUp(USERS)
  assert.deepEqual([isOver('team=blue'), isOver('team=blue')], [false, false])
  const { over, statuses } = send('user=alice', 'team=blue')
  assert.equal(over, true)
  assert.deepEqual(
    statuses.map((status) => [status.over, status.remaining]),
    [
      [false, 3],
      [true, 0],
    ],
  )
  assert.deepEqual([left('user=alice'), left('team=blue')], [3, 0])
})

test('windows are aligned: the budget is whole again when the minute ends, and not before', () => {
  const { isOver, clock } = setUp(USERS)
  for (let i = 0; i < 2; i++) assert.equal(isOver('team=blue'), false)
  clock.set(59_999)
  assert.equal(isOver('team=blue'), true)
  clock.set(60_000)
  assert.equal(isOver('team=blue'), false)
})

test('hits of the request count for each descriptor that has none of its own; 0 is 1 there, and a look here', () => {
  const { limits, request, send, left, isOver } = setUp(USERS)
  atOnce(limits.decide(request(['user=alice', descriptor('team=blue', { hitsAddend: 1 })], 2)))
  assert.deepEqual([left('user=alice'), left('team=blue')], [1, 1])
  assert.equal(isOver(descriptor('user=alice', { hitsAddend: 2 })), true)
  assert.equal(left('user=alice'), 1)
  const look = descriptor('user=alice', { hitsAddend: 0 })
  for (let i = 0; i < 5; i++) assert.equal(isOver(look), false)
  isOver('user=alice')
  assert.equal(isOver(look), true, 'nothing is left')
  assert.equal(isOver(look, 'team=blue'), true)
  assert.equal(send('team=blue').statuses[0]?.remaining, 0, 'the look denied the take beside it')
})

test('negative hits give back, at most to a full budget, and always pass', () => {
  const { isOver, left } = setUp(USERS)
  for (let i = 0; i < 3; i++) isOver('user=alice')
  assert.equal(isOver(descriptor('user=alice', { hitsAddend: 2, isNegativeHits: true })), false)
  assert.equal(left('user=alice'), 2)
  assert.equal(isOver(descriptor('user=alice', { hitsAddend: 1_000_000, isNegativeHits: true })), false)
  assert.equal(left('user=alice'), 3)
  assert.equal(isOver(descriptor('user=fresh', { isNegativeHits: true })), false)
  assert.equal(left('user=fresh'), 3)
})

test('hits far beyond every limit are denied like any others', () => {
  const { isOver, left } = setUp(USERS)
  for (const hitsAddend of [4, 2 ** 32, 2 ** 53, 1.8e19]) assert.equal(isOver(descriptor('user=alice', { hitsAddend })), true)
  assert.equal(left('user=alice'), 3)
})

test('a limit of 0 denies every hit, and an unlimited one none', () => {
  const { send } = setUp(`descriptors:
  - { key: banned, rate_limit: { unit: hour, requests_per_unit: 0 } }
  - { key: free, rate_limit: { unlimited: true } }
`)
  assert.deepEqual(send('banned=x').statuses, [
    { over: true, limit: { requestsPerUnit: 0, unit: 3, name: '' }, remaining: 0, resetS: 3_588 },
  ])
  assert.deepEqual(send('free=x'), {
    over: false,
    statuses: [{ over: false, limit: undefined, remaining: 0xffff_ffff, resetS: 0 }],
    headers: [],
    metadata: undefined,
  })
})

test('a limit that another one replaces does not apply, and is not charged', () => {
  const { isOver, left } = setUp(`descriptors:
  - { key: user, rate_limit: { unit: minute, requests_per_unit: 1, name: general } }
  - { key: vip, rate_limit: { unit: minute, requests_per_unit: 3, replaces: [{ name: general }, { name: other }] } }
  - { key: ban, rate_limit: { unit: minute, requests_per_unit: 0, name: other } }
`)
  for (let i = 0; i < 3; i++) assert.equal(isOver('user=alice', 'vip=1', 'ban=1'), false)
  assert.equal(left('user=alice'), 1)
  assert.equal(isOver('user=alice', 'vip=1'), true)
  assert.deepEqual([isOver('user=alice'), isOver('user=alice')], [false, true])
})

test('a rule in shadow mode counts, reports and never denies', () => {
  const { send, isOver, left, limits } = setUp(`descriptors:
  - { key: user, shadow_mode: true, rate_limit: { unit: minute, requests_per_unit: 1 } }
  - { key: team, rate_limit: { unit: minute, requests_per_unit: 3 } }
`)
  assert.equal(isOver('user=alice', 'team=blue'), false)
  const { over, statuses } = send('user=alice', 'team=blue')
  assert.deepEqual(
    [over, statuses.map((status) => [status.over, status.remaining])],
    [
      false,
      [
        [false, 0],
        [false, 1],
      ],
    ],
  )
  assert.equal(left('team=blue'), 1)
  const hits = Object.fromEntries(limits.hits.entries())
  assert.deepEqual(hits['edge.user'], { allowed: 1, denied: 0, over_quota: 0, shadowed: 1, refunded: 0 })
})

test('shadow mode of the service lets every request pass and keeps the statuses', () => {
  const { send } = setUp(USERS, { shadowMode: true })
  for (let i = 0; i < 2; i++) send('team=blue')
  const { over, statuses } = send('team=blue')
  assert.deepEqual([over, statuses[0]?.over], [false, true])
})

const QUOTAS = `descriptors:
  - { key: model, value: a, quota_mode: true, rate_limit: { unit: minute, requests_per_unit: 1 } }
  - { key: model, value: b, quota_mode: true, rate_limit: { unit: minute, requests_per_unit: 2 } }
  - { key: user, rate_limit: { unit: minute, requests_per_unit: 10 } }
`

test('quotas deny only when all of them are spent; what is left of the others is charged', () => {
  const { send, isOver, left } = setUp(QUOTAS)
  assert.equal(isOver('model=a', 'model=b', 'user=x'), false)
  const { over, statuses } = send('model=a', 'model=b', 'user=x')
  assert.deepEqual([over, statuses.map((status) => status.over)], [false, [true, false, false]])
  assert.deepEqual([left('model=a'), left('model=b'), left('user=x')], [0, 0, 8])
  assert.equal(isOver('model=a', 'model=b', 'user=x'), true)
  assert.equal(left('user=x'), 8)
})

test('a limit that is no quota denies beside quotas that are left, and nothing is charged', () => {
  const { isOver, left } = setUp(QUOTAS)
  assert.equal(isOver('model=a', descriptor('user=x', { hitsAddend: 11 })), true)
  assert.equal(left('model=a'), 1)
})

test('hits over a quota are counted as denied only where the request was denied', () => {
  const { send, limits } = setUp(QUOTAS)
  for (let i = 0; i < 3; i++) send('model=a', 'model=b')
  send('model=a', descriptor('user=x', { hitsAddend: 11 }))
  const hits = Object.fromEntries(limits.hits.entries())
  const none = { shadowed: 0, refunded: 0 }
  assert.deepEqual(hits['edge.model_a'], { allowed: 1, denied: 2, over_quota: 1, ...none })
  assert.deepEqual(hits['edge.model_b'], { allowed: 2, denied: 1, over_quota: 0, ...none })
  assert.deepEqual(hits['edge.user'], { allowed: 0, denied: 11, over_quota: 0, ...none })
})

test('a quota that is left is not counted as allowed where another limit denied the request', () => {
  const { send, limits } = setUp(QUOTAS)
  send('model=a', descriptor('user=x', { hitsAddend: 11 }))
  assert.equal(Object.fromEntries(limits.hits.entries())['edge.model_a']?.allowed ?? 0, 0)
})

test('in quota mode of the service a request is over only if all its limits are', () => {
  const { isOver } = setUp(USERS, { quotaMode: true })
  for (let i = 0; i < 2; i++) isOver('team=blue')
  assert.equal(isOver('team=blue', 'user=alice'), false)
  assert.equal(isOver('team=blue'), true)
  assert.equal(isOver('team=blue', 'unknown=1'), false, 'what has no limit has not failed')
})

test('with charge_denied each descriptor is charged by itself, also for hits that are denied', () => {
  const { send, isOver, clock, left } = setUp(`charge_denied: true\n${USERS}`)
  const report = descriptor('user=alice', { hitsAddend: 5 })
  const look = descriptor('user=alice', { hitsAddend: 0 })
  for (let i = 0; i < 3; i++) assert.equal(isOver('user=alice', 'team=blue'), i === 2)
  assert.equal(left('user=alice'), 0, 'the last one was charged here, and denied there')
  assert.equal(isOver(look), false, 'as many hits as the limit allows are not over it')
  assert.equal(isOver(report), true)
  assert.equal(isOver(look), true)
  assert.equal(send(descriptor('user=alice', { hitsAddend: 6, isNegativeHits: true })).statuses[0]?.remaining, 1)
  clock.set(60_000)
  assert.equal(isOver('user=alice'), false, 'the debt ends with the window')
})

test('an override of a descriptor takes the place of the limit, and has a budget for its entries', () => {
  const { send, isOver } = setUp(USERS)
  const override = (entries: string, requestsPerUnit: number, unit = 2) => descriptor(entries, { limit: { requestsPerUnit, unit } })
  assert.deepEqual(send(override('user=alice', 5)).statuses, [
    { over: false, limit: { requestsPerUnit: 5, unit: 2, name: '' }, remaining: 4, resetS: 48 },
  ])
  for (let i = 0; i < 4; i++) assert.equal(isOver(override('user=alice', 5)), false)
  assert.equal(isOver(override('user=alice', 5)), true)
  assert.equal(isOver(override('user=bob', 5)), false)
  assert.equal(isOver(override('unknown=1', 1, 1)), false, 'a rule is not needed')
  assert.equal(isOver(override('unknown=1', 0)), true)
  assert.throws(() => send(override('user=alice', 5, 0)), { name: 'LimitRequestError', reason: 'invalid' })
})

test('limits that requests bring along push none out, however many there are, and have one table for each unit', () => {
  const { send, isOver, engine } = setUp(USERS)
  const victim = descriptor('user=victim', { limit: { requestsPerUnit: 5, unit: 3 } })
  for (let i = 0; i < 5; i++) assert.equal(isOver(victim), false)
  assert.equal(isOver(victim), true)
  for (let i = 1; i <= 600; i++) send(descriptor(`user=${i}`, { limit: { requestsPerUnit: i, unit: 3 } }))
  assert.equal(isOver(victim), true)
  assert.equal([...engine.policies].length, 3)
  const { statuses } = send(descriptor('user=victim', { limit: { requestsPerUnit: 7, unit: 3 } }))
  assert.deepEqual([statuses[0]?.over, statuses[0]?.remaining], [false, 1], 'a higher limit for the same entries: what was counted stays')
})

test('a new key without room for what requests bring along is denied and counted, and no key that owes makes room', () => {
  const { engine } = setUp(USERS)
  const overrides = new Overrides(engine, 64)
  const take = (user: string): boolean => {
    const { limit, key, priority } = overrides.limit(
      'edge',
      [{ key: 'user', value: user }],
      { requestsPerUnit: 1, unit: 6 },
      (text) => text,
    )
    return atOnce(engine.policy(limit.policy ?? '')?.take(key, 1, priority) ?? assert.fail()).allowed
  }
  const passed = Array.from({ length: 400 }, (_, i) => `user-${i}`).filter(take)
  const { refusals, evictions } = engine.policy('override per year')?.stats() ?? assert.fail()
  assert.ok(passed.length >= 64 && passed.length < 400, `${passed.length}`)
  assert.deepEqual([refusals, evictions], [400 - passed.length, 0])
  assert.deepEqual(passed.filter(take), [], 'each is over its limit until its year ends')
})

test('other algorithms and costs: a bucket says when a hit passes again, and a hit may take several tokens', () => {
  const { send, isOver, clock } = setUp(`descriptors:
  - { key: user, rate_limit: { algorithm: token-bucket, window: 10s, requests_per_unit: 5, burst: 2 } }
  - { key: page, rate_limit: { unit: minute, requests_per_unit: 10, cost: 4 } }
`)
  for (let i = 0; i < 2; i++) assert.equal(isOver('user=alice'), false)
  assert.deepEqual(send('user=alice').statuses, [{ over: true, limit: { requestsPerUnit: 5, unit: 0, name: '' }, remaining: 0, resetS: 2 }])
  clock.advance(2_000)
  assert.equal(isOver('user=alice'), false)
  assert.deepEqual([send('page=1').statuses[0]?.remaining, send('page=1').statuses[0]?.remaining, isOver('page=1')], [1, 0, true])
})

test('headers are those of the descriptor nearest to its limit, or of one that denies', () => {
  const { send } = setUp(USERS, { headers: HEADERS })
  assert.deepEqual(send('user=alice', 'team=blue', 'unknown=1').headers, [
    ['L', '2'],
    ['R', '1'],
    ['S', '48'],
  ])
  assert.deepEqual(send('unknown=1').headers, [])
  send('team=blue')
  assert.deepEqual(send('team=blue', 'user=alice').headers, [
    ['L', '2'],
    ['R', '0'],
    ['S', '48'],
  ])
})

test('dynamic metadata has the request, and the metadata of the limits that passed, the first value of a name', () => {
  const { send } = setUp(
    `descriptors:
  - { key: a, rate_limit: { unit: minute, requests_per_unit: 1 }, metadata: { owner: { team: x, mail: a }, first: 1 } }
  - { key: b, rate_limit: { unit: minute, requests_per_unit: 9 }, metadata: { owner: { team: y, floor: 2 }, __proto__: { z: 1 } } }
`,
    { dynamicMetadata: true },
  )
  const passed = send('a=1', descriptor('b=2', { hitsAddend: 2 })).metadata
  assert.equal(
    JSON.stringify(passed),
    '{"domain":"edge","descriptors":[{"entries":["a=1"]},{"entries":["b=2"],"hitsAddend":2}],"metadata":{"owner":{"team":"x","mail":"a","floor":2},"first":1,"__proto__":{"z":1}}}',
  )
  assert.equal(({} as { z?: number }).z, undefined)
  assert.equal(JSON.stringify(send('a=1', 'b=2').metadata).includes('first'), false)
})

test('the same descriptor twice is charged twice, or not at all', () => {
  const { isOver, left } = setUp(USERS)
  assert.equal(isOver('team=blue', 'team=blue'), false)
  assert.equal(left('team=blue'), 0)
  assert.equal(isOver('user=alice', 'user=alice', 'user=alice', 'user=alice'), true)
  assert.equal(left('user=alice'), 3)
})

test('a request without domain or descriptors is refused, one of an unknown domain has no limits', () => {
  const { limits, request } = setUp(USERS)
  assert.throws(() => limits.decide({ ...request(['user=a']), domain: '' }), /^LimitRequestError: rate limit domain must not be empty$/)
  assert.throws(() => limits.decide(request([])), /^LimitRequestError: rate limit descriptor list must not be empty$/)
  const other = atOnce(limits.decide({ ...request(['user=a']), domain: 'other' }))
  assert.deepEqual([other.over, other.statuses.length, other.statuses[0]?.limit], [false, 1, undefined])
})

test('a request with far more descriptors or entries than Envoy sends is refused', () => {
  const { send } = setUp(USERS)
  assert.throws(() => send(...Array<string>(129).fill('user=a')), { reason: 'invalid' })
  assert.throws(() => send(descriptor(Array<string>(65).fill('user=a').join(' '))), { reason: 'invalid' })
})

test('hits are counted by rule and outcome; what another descriptor denied counts nowhere', () => {
  const { send, limits } = setUp(USERS)
  send('user=alice', 'team=blue')
  send('user=alice', 'team=blue')
  send('user=alice', 'team=blue')
  send(descriptor('user=alice', { hitsAddend: 2, isNegativeHits: true }))
  assert.deepEqual(Object.fromEntries(limits.hits.entries()), {
    'edge.user': { allowed: 2, denied: 0, over_quota: 0, shadowed: 0, refunded: 2 },
    'edge.team': { allowed: 2, denied: 1, over_quota: 0, shadowed: 0, refunded: 0 },
  })
})
