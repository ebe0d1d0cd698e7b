import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isIntricate } from './body.js'

const isMuch = (text: string): boolean => isIntricate(Buffer.from(text))

test('a body of many values or levels is not read as JSON, and one of long strings is, whatever is in them', () => {
  assert.equal(isMuch('['.repeat(17)), true)
  assert.equal(isMuch('['.repeat(16)), false)
  assert.equal(isMuch(`[${'1,'.repeat(9_000)}1]`), true)
  assert.equal(isMuch(JSON.stringify({ takes: Array.from({ length: 100 }, () => ({ policy: 'p', key: '[,:"\\'.repeat(500) })) })), false)
  for (const open of ['"', '"\\', '"\\"', '{"a']) assert.equal(isMuch(open), false)
})
