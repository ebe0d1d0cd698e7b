import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { shortOrLong } from 'sluicegate-testkit'
import { repeatedMember } from './body.js'

test('an object of any members has none twice, and with one of them again it has', () => {
  const value = fc.jsonValue({ maxDepth: 3 })
  fc.assert(
    fc.property(fc.dictionary(fc.string({ unit: 'binary' }), value, { minKeys: 1 }), value, fc.nat(), (object, again, i) => {
      const text = JSON.stringify(object, null, i % 3)
      assert.equal(repeatedMember(text), undefined)
      const names = Object.keys(JSON.parse(text))
      const name = names[i % names.length] as string
      assert.equal(repeatedMember(`${text.trimEnd().slice(0, -1)},${JSON.stringify(name)}:${JSON.stringify(again)}}`), name)
    }),
    { numRuns: shortOrLong(25, 100) },
  )
})

test('equal names in values do not count', () => {
  assert.equal(repeatedMember('{"a":{"b":1,"c":2},"b":[{"a":1,"b":2}],"c":"\\"a\\":1"}'), undefined)
})
