import assert from 'node:assert/strict'
import { test } from 'node:test'
import { crc32 as zlibCrc32 } from 'node:zlib'
import { crc32 } from './snapshot.js'

test('the check value of the standard', () => {
  assert.equal(crc32(new TextEncoder().encode('123456789')), 0xcbf43926)
})

test('any bytes give what zlib gives', () => {
  for (let length = 0; length < 600; length += 7) {
    const bytes = Uint8Array.from({ length }, (_, i) => (i * 167 + length) & 0xff)
    assert.equal(crc32(bytes), zlibCrc32(bytes))
  }
})
