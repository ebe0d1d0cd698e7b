import assert from 'node:assert/strict'
import { test } from 'node:test'
import { faultsOf } from 'sluicegate-testkit/service/running-service.js'
import { parseConfig } from './read-config.js'
import { configObject } from './shown-config.js'

const POLICIES = `policies:
  team: { algorithm: token-bucket, limit: 10, window: 1s }
  month: { algorithm: fixed-window, limit: 1000, window: month }
  slots: { algorithm: concurrency, limit: 10 }
`

test('without a section the entry "name" of a bucket id names the policy, and times have defaults', () => {
  const { quotas, quotaRules } = parseConfig(POLICIES)
  assert.deepEqual([quotas, quotaRules], [{ ttlSeconds: 15, idleMs: 600_000 }, undefined])
})

test('rules are read, and shown', () => {
  const config = parseConfig(`${POLICIES}quotas:
  ttl: 30s
  idle: 1h
  rules:
    - { policy: team, domain: edge, match: { env: "prod*", v: 2 }, key: [team] }
    - { policy: month, burst: 200 }
`)
  assert.deepEqual(config.quotas, { ttlSeconds: 30, idleMs: 3_600_000 })
  const match = new Map([
    ['env', 'prod*'],
    ['v', '2'],
  ])
  assert.deepEqual(config.quotaRules, [
    { policy: 'team', domain: 'edge', match, key: ['team'], burst: undefined },
    { policy: 'month', domain: undefined, match: new Map(), key: undefined, burst: 200 },
  ])
  assert.deepEqual((configObject(config) as { quotas: object }).quotas, {
    ttl: '30s',
    idle: '1h',
    rules: [
      { policy: 'team', domain: 'edge', match: { env: 'prod*', v: '2' }, key: ['team'] },
      { policy: 'month', burst: 200 },
    ],
  })
})

test('faults have their places', () => {
  const faults = faultsOf(`${POLICIES}quotas:
  ttl: 1500ms
  rules:
    - { policy: teem }
    - { policy: slots }
    - { policy: team, burst: 5 }
    - { policy: month, burst: 1000 }
    - { domain: edge, keys: [team] }
`)
  assert.deepEqual(faults, [
    'gate.yaml:6:8: quotas.ttl: must be whole seconds, for example 15s',
    'gate.yaml:8:17: quotas.rules[0].policy: is no policy of these files; did you mean "team"?',
    'gate.yaml:9:17: quotas.rules[1].policy: is concurrency, which has no rate that can be split among data planes',
    'gate.yaml:10:23: quotas.rules[2].burst: is for policies with windows: the burst of token-bucket is that of the policy',
    'gate.yaml:11:31: quotas.rules[3].burst: must be an integer from 1 to 999, not 1000',
    'gate.yaml:12:7: quotas.rules[4].policy: is missing',
    'gate.yaml:12:23: quotas.rules[4].keys: unknown option; did you mean "key"?',
  ])
})
