import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { tokenBucket } from 'sluicegate'
import { Engine, PolicyError } from '../../engine.js'
import { readAsk } from './ask.js'
import { Problem } from './problem.js'
import { readQuery } from './query.js'

const engine = new Engine([{ policy: tokenBucket({ name: 'burst', limit: 9, window: '1s' }), maxKeys: 1_000, onFull: 'evict' }])
const RUNS = { numRuns: 20_000, seed: 20_261_121 }

/** Whatever comes from outside ends in a decision or in words for the client, never in an accident. */
function answers(parameters: () => ReadonlyMap<string, unknown>): void {
  try {
    const { gate, key, cost } = readAsk(engine, parameters())
    const { remaining } = gate.take(key, cost)
    assert.ok(remaining >= 0 && remaining <= 9)
  } catch (error) {
    if (!(error instanceof Problem || error instanceof PolicyError)) throw error
    assert.ok(error.message.length < 300 && !/[\r\n]/.test(error.message), error.message)
  }
}

test('any query string ends in a decision or in a problem', () => {
  const pieces = fc.constantFrom(
    'policy=',
    'key=',
    'cost=',
    'burst',
    '&',
    '=',
    '%',
    '%41',
    '%ff',
    '+',
    '1',
    '0',
    '__proto__',
    'é',
    '\u0000',
  )
  const query = fc.oneof(
    fc.string({ unit: 'binary', maxLength: 60 }),
    fc.array(pieces, { maxLength: 14 }).map((parts) => parts.join('')),
  )
  fc.assert(
    fc.property(query, (text) => answers(() => readQuery(text))),
    RUNS,
  )
})

test('any JSON object ends in a decision or in a problem', () => {
  const name = fc.constantFrom('policy', 'key', 'cost', '__proto__', 'Key')
  const value = fc.oneof(fc.constantFrom('burst', 'alice', 1, 3, 0, -1, 1e308, null, true), fc.string({ unit: 'binary' }), fc.jsonValue())
  fc.assert(
    fc.property(fc.array(fc.tuple(name, value), { maxLength: 4 }), (members) => answers(() => new Map<string, unknown>(members))),
    RUNS,
  )
})
