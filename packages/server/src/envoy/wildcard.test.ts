import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { matchesParts } from './wildcard.js'

test('a pattern matches what the regular expression with .* in the place of each * matches', () => {
  const text = fc.string({ unit: fc.constantFrom('a', 'b', '/', '.'), maxLength: 12 })
  const pattern = fc.string({ unit: fc.constantFrom('a', 'b', '/', '.', '*'), maxLength: 8 })
  fc.assert(
    fc.property(pattern, text, (shape, value) => {
      const expected = new RegExp(`^${shape.replace(/[./]/g, '\\$&').replaceAll('*', '.*')}$`).test(value)
      assert.equal(matchesParts(shape.split('*'), value), expected, `${shape} ${value}`)
    }),
    { numRuns: 20_000 },
  )
})

test('prefix and suffix of a pattern do not share characters of a value', () => {
  assert.equal(matchesParts('aba*ba'.split('*'), 'aba'), false)
  assert.equal(matchesParts('aba*ba'.split('*'), 'ababa'), true)
})

test('a hostile pattern costs no more than its length times that of the value', () => {
  const parts = `${'a*'.repeat(500)}b`.split('*')
  const startMs = performance.now()
  assert.equal(matchesParts(parts, 'a'.repeat(100_000)), false)
  assert.ok(performance.now() - startMs < 1_000)
})
