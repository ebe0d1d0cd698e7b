import assert from 'node:assert/strict'
import { test } from 'node:test'
import { merged, type ServerResults } from './server-report.js'

const earlier = {
  kind: 'server',
  startedAt: 'earlier',
  machine: { cpu: 'a', cores: 2, os: 'b', node: 'c' },
  effort: {},
  later: { resp: 'between' },
  http: [{ subject: 'hello' }],
  rates: ['http', 'grpc', 'resp'].map((protocol) => ({ protocol, capacity: [5] })),
} as unknown as ServerResults
const [http, grpc, resp] = earlier.rates.map((figure) => ({ ...figure, capacity: [7] }))
const startup = [{ serviceMs: [250], compiledMs: [400], nodeMs: [80] }]
const later = { ...earlier, startedAt: 'later', startup, http: [], rates: [resp, grpc, http] } as ServerResults

test('parts measured later replace their own, and all others stay as they are', () => {
  const result = merged(earlier, later, ['rates-grpc', 'startup'])
  assert.deepEqual(result.rates, [earlier.rates[0], grpc, earlier.rates[2]])
  assert.equal(result.startup, startup)
  assert.equal(result.http, earlier.http)
  assert.deepEqual(result.later, { ...earlier.later, 'rates-grpc': 'later', startup: 'later' })
})

test('results of two machines are not merged', () => {
  const elsewhere = { ...later, machine: { ...later.machine, cores: 64 } }
  assert.throws(() => merged(earlier, elsewhere, ['startup']), /cores was \d+ in the results so far and is 64/)
})
