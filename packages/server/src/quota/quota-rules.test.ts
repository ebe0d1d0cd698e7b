import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseConfig } from 'sluicegate-config/read-config.js'
import { envoyDomains } from 'sluicegate-testkit/service/running-service.js'
import { Engine } from '../engine/engine.js'
import { bucketIdOf } from './quota-counts.js'
import { budgetNumbers, QuotaRules } from './quota-rules.js'

const POLICIES = `policies:
  team: { algorithm: token-bucket, limit: 10, window: 1s, burst: 30, tiers: { gold: { limit: 100 } }, keys: { acme: gold } }
  minute: { algorithm: fixed-window, limit: 600, window: 1m }
  slots: { algorithm: concurrency, limit: 10 }
`
const FILE = `domain: files
descriptors:
  - key: user
    rate_limit: { unit: second, requests_per_unit: 20 }
    descriptors:
      - { key: path, value: /login, rate_limit: { unit: minute, requests_per_unit: 60, cost: 2, algorithm: token-bucket, burst: 10 } }
  - { key: path, value: /free, rate_limit: { unlimited: true } }
  - { key: path, value: /closed, rate_limit: { unit: second, requests_per_unit: 0 } }
  - { key: shadow, shadow_mode: true, rate_limit: { unit: second, requests_per_unit: 5 } }
`

function rulesOf(quotas = '', isShadow = false): QuotaRules {
  const { policies, quotaRules } = parseConfig(`${POLICIES}${quotas}`)
  const domains = envoyDomains(FILE)
  const engine = new Engine([...policies, ...domains.flatMap((domain) => domain.policies)])
  return new QuotaRules(engine, { rules: quotaRules, domains }, isShadow)
}

const entriesOf = (bucket: Record<string, string>) => Object.entries(bucket).map(([key, value]) => ({ key, value }))

function found(rules: QuotaRules, bucket: Record<string, string>, domain = 'edge') {
  return rules.find(domain, bucketIdOf(entriesOf(bucket))?.entries ?? assert.fail())
}

test('the entry "name" names a policy, and the other entries have budgets of their own', () => {
  const rules = rulesOf()
  const one = found(rules, { name: 'team', tenant: 'a' })
  assert.deepEqual([one?.policy, one?.limit()], ['team', { ratePerSecond: 10, burst: 30 }])
  assert.equal(one?.key, found(rules, { tenant: 'a', name: 'team' })?.key)
  const others = [
    found(rules, { name: 'team', tenant: 'b' }),
    found(rules, { name: 'team' }),
    found(rules, { name: 'team', tenant: 'a' }, 'x'),
  ]
  assert.equal(new Set([one, ...others].map((each) => each?.key)).size, 4)
  assert.equal(found(rules, { name: 'none' }), undefined)
  assert.equal(found(rules, { tenant: 'a' }), undefined)
  assert.equal(found(rules, { name: 'slots' })?.limit(), undefined)
})

test('a key has the limit of its tier', () => {
  assert.deepEqual(found(rulesOf(), { name: 'team', tenant: 'acme' })?.limit(), { ratePerSecond: 100, burst: 100 })
})

test('the first rule that matches applies; its key says which buckets share a budget', () => {
  const rules = rulesOf(`quotas:
  rules:
    - { policy: minute, domain: edge, match: { env: "prod*" }, key: [team], burst: 100 }
    - { policy: team, match: { env: staging } }
    - { policy: minute, domain: shared, key: [] }
`)
  const prod = found(rules, { env: 'prod-eu', team: 'a', pod: '1' })
  assert.deepEqual([prod?.policy, prod?.limit()], ['minute', { ratePerSecond: 500 / 60, burst: 100 }])
  assert.equal(prod?.key, found(rules, { env: 'prod-us', team: 'a', pod: '2' })?.key)
  assert.notEqual(prod?.key, found(rules, { env: 'prod-eu', team: 'b' })?.key)
  assert.equal(found(rules, { env: 'prod-eu' }), undefined, 'without the entry of the key')
  assert.equal(found(rules, { env: 'staging' })?.policy, 'team')
  assert.equal(found(rules, { env: 'staging', x: '1' })?.key === found(rules, { env: 'staging', x: '2' })?.key, false)
  assert.equal(found(rules, { a: '1' }, 'shared')?.key, found(rules, { b: '2' }, 'shared')?.key)
  assert.equal(found(rules, { name: 'team' }), undefined, 'with rules no name counts')
})

test('files of Envoy decide for their domain, in whatever order the entries are', () => {
  const rules = rulesOf()
  const login = found(rules, { path: '/login', user: 'eve' }, 'files')
  assert.deepEqual([login?.policy, login?.limit()], ['files.user.path_/login', { ratePerSecond: 0.5, burst: 5 }])
  assert.notEqual(login?.key, found(rules, { path: '/login', user: 'ada' }, 'files')?.key)
  assert.deepEqual(found(rules, { user: 'eve' }, 'files')?.limit(), { ratePerSecond: 18, burst: 2 })
  assert.equal(found(rules, { path: '/free' }, 'files')?.limit(), 'allow')
  assert.equal(found(rules, { path: '/closed' }, 'files')?.limit(), 'deny')
  assert.equal(found(rules, { shadow: 'x' }, 'files')?.limit(), 'allow')
  assert.equal(found(rules, { path: '/login' }, 'files'), undefined)
  assert.equal(found(rules, { name: 'team' }, 'files'), undefined)
  assert.equal(found(rulesOf('', true), { user: 'eve' }, 'files')?.limit(), 'allow')
})

test('a window becomes a rate and a burst that are its limit together', () => {
  const { policies } = parseConfig(`policies:
  one: { algorithm: fixed-window, limit: 1, window: 1s }
  few: { algorithm: sliding-log, limit: 5, window: 1s }
  many: { algorithm: sliding-window, limit: 1000, window: 10s }
`)
  const numbers = policies.map(({ policy }) => budgetNumbers(policy))
  assert.deepEqual(numbers, [
    { ratePerSecond: 1, burst: 1 },
    { ratePerSecond: 4, burst: 1 },
    { ratePerSecond: 90, burst: 100 },
  ])
})

test('an id without entries, with empty ones, the same key twice or too much text is none', () => {
  assert.equal(bucketIdOf([]), undefined)
  assert.equal(bucketIdOf(entriesOf({ a: '' })), undefined)
  assert.equal(bucketIdOf([...entriesOf({ a: '1' }), ...entriesOf({ a: '2' })]), undefined)
  assert.equal(bucketIdOf(entriesOf({ a: 'x'.repeat(1_024) })), undefined)
  assert.equal(bucketIdOf(Array.from({ length: 17 }, (_, i) => ({ key: `${i}`, value: 'x' }))), undefined)
  assert.equal(bucketIdOf(entriesOf({ b: '2', a: '1' }))?.text, '["a","1","b","2"]')
})
