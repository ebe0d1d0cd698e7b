import assert from 'node:assert/strict'
import { test } from 'node:test'
import { faultsOf } from 'sluicegate-testkit/service/running-service.js'
import { DEFAULT_CLIENTS, DEFAULT_STOP } from './config.js'
import { parseConfig } from './read-config.js'

const POLICIES = 'policies:\n  a: { algorithm: gcra, limit: 1, window: 1s }\n'

test('without a word about it there are bounds', () => {
  const { clients, stop } = parseConfig(POLICIES)
  assert.deepEqual({ clients, stop }, { clients: DEFAULT_CLIENTS, stop: DEFAULT_STOP })
})

test('each bound can be set', () => {
  const { clients, stop } = parseConfig(`${POLICIES}clients:
  max-connections: 200
  max-connections-per-address: 150
  headers-timeout: 1s
  request-timeout: 2500ms
  read-timeout: 1.5s
  idle-timeout: 2m
stop: { drain: 0s, finish: 1h }
`)
  assert.deepEqual(clients, {
    maxConnections: 200,
    maxConnectionsPerAddress: 150,
    headersMs: 1_000,
    requestMs: 2_500,
    readMs: 1_500,
    idleMs: 120_000,
  })
  assert.deepEqual(stop, { drainMs: 0, finishMs: 3_600_000 })
})

test('one address may have half of all connections, where the file does not say how many', () => {
  assert.equal(parseConfig(`${POLICIES}clients: { max-connections: 51 }\n`).clients.maxConnectionsPerAddress, 26)
})

for (const [what, section, reason] of [
  ['a time without a unit', 'stop: { drain: 5 }', /stop\.drain: must be a time with a unit from 0ms to 1h, for example 5s, not 5$/],
  ['a time that is too long', 'stop: { finish: 2h }', /stop\.finish: must be a time .*, not "2h"$/],
  ['no connections', 'clients: { max-connections: 0 }', /clients\.max-connections: must be an integer from 1 to 1000000, not 0$/],
  ['a time-out of nothing', 'clients: { read-timeout: 0s }', /clients\.read-timeout: must be a time with a unit from 100ms to 1h/],
  [
    'headers that may take longer than the request',
    'clients: { headers-timeout: 20s }',
    /clients\.request-timeout: must be at least headers-timeout/,
  ],
  ['a bound that is none', 'clients: { max-conections: 5 }', /clients\.max-conections: unknown option; did you mean "max-connections"\?$/],
  ['a bound given twice', 'clients: { idle-timeout: 5s, idle-timeout: 6s }', /unique/],
] as const) {
  test(`${what} is a fault`, () => {
    const [fault = assert.fail('there is none'), ...more] = faultsOf(POLICIES + section)
    assert.match(fault, reason)
    assert.deepEqual(more, [])
  })
}
