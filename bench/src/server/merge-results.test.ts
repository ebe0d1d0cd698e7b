import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { merged } from './merge-results.js'
import type { ServerResults } from './server-results.js'

const committed = JSON.parse(readFileSync(new URL('../../results/server.json', import.meta.url), 'utf8')) as ServerResults
const [http, grpc, resp] = committed.rates.map((figure) => ({ ...figure, capacity: [7] }))
const startup = [{ serviceMs: [250], compiledMs: [400], nodeMs: [80] }]
const later = { ...committed, startedAt: 'later', startup, http: [], rates: [resp, grpc, http] } as ServerResults

test('parts measured later replace their own, and all others stay as they are', () => {
  const result = merged(committed, later, ['rates-grpc', 'startup'])
  assert.deepEqual(result.rates, [committed.rates[0], grpc, committed.rates[2]])
  assert.equal(result.startup, startup)
  assert.equal(result.http, committed.http)
  assert.deepEqual(result.later, { ...committed.later, 'rates-grpc': 'later', startup: 'later' })
})

test('results of two machines are not merged', () => {
  const elsewhere = { ...later, machine: { ...later.machine, cores: 64 } }
  assert.throws(() => merged(committed, elsewhere, ['startup']), /cores was \d+ in the results so far and is 64/)
})
