import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { allOf, slidingLog, tokenBucket } from 'sluicegate'
import { shortOrLong } from 'sluicegate-testkit'
import { atOnce } from 'sluicegate-testkit/service/running-service.js'
import { Engine, PolicyError } from '../../engine/engine.js'
import { Problem } from './problem.js'
import { readQuery } from './query.js'
import { parseTakeRequest } from './take-request.js'

const burst = tokenBucket({ name: 'burst', limit: 9, window: '1s' })
const both = allOf([burst, slidingLog({ limit: 9, window: '1s' })], { name: 'both' })
const engine = new Engine([burst, both].map((policy) => ({ policy, maxKeys: 1_000, onFull: 'evict' })))
const RUNS = { numRuns: shortOrLong(300, 4_000), seed: 20_261_121 }

/** Any input from outside leads to a decision or to a problem for the client, never to an internal error. */
function answers(parameters: () => ReadonlyMap<string, unknown>): void {
  try {
    const { served, key, cost } = parseTakeRequest(engine, parameters())
    const { remaining } = atOnce(served.take(key, cost))
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
  const value = fc.oneof(
    fc.constantFrom('burst', 'both', 'alice', 1, 3, 0, -1, 1e308, null, true),
    fc.string({ unit: 'binary' }),
    fc.jsonValue(),
  )
  fc.assert(
    fc.property(fc.array(fc.tuple(name, value), { maxLength: 4 }), (members) => answers(() => new Map<string, unknown>(members))),
    RUNS,
  )
})

test('JSON may have one key for each of several policies, each of which is looked at', () => {
  const parsed = (policy: string, key: unknown) => parseTakeRequest(engine, new Map<string, unknown>(Object.entries({ policy, key })))
  const { served, key, cost } = parsed('both', ['alice', 'blue'])
  assert.deepEqual(key, ['alice', 'blue'])
  assert.equal(atOnce(served.take(key, cost)).allowed, true)
  for (const wrong of [
    ['alice', ''],
    ['alice', 5],
    ['alice', '\ud800'],
    ['alice', ['blue']],
  ]) {
    assert.throws(() => parsed('both', wrong), Problem, JSON.stringify(wrong))
  }
  for (const [policy, keys] of [
    ['both', ['alice']],
    ['both', []],
    ['burst', ['alice']],
    ['burst', []],
  ] as const) {
    const asked = parsed(policy, keys)
    assert.throws(() => asked.served.take(asked.key, 1), PolicyError, `${policy} ${keys}`)
  }
})
