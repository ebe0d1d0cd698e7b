import assert from 'node:assert/strict'
import { createHash, createHmac } from 'node:crypto'
import { test } from 'node:test'
import { Random } from 'sluicegate-testkit'
import { base64Url } from './key-reader.js'
import { hmacSha256, sha256, unitBytes } from './sha256.js'

function bytesOf(random: Random, length: number): Uint8Array {
  return Uint8Array.from({ length }, () => random.integer(0, 255))
}

test('digests are those of node:crypto, at every length up to four blocks and at a megabyte', () => {
  const random = new Random(1)
  for (const length of [...Array.from({ length: 257 }, (_, i) => i), 1 << 20]) {
    const bytes = bytesOf(random, length)
    assert.equal(base64Url(sha256(bytes)), createHash('sha256').update(bytes).digest('base64url'), `${length} bytes`)
  }
})

test('keyed digests are those of node:crypto, for secrets shorter and longer than a block', () => {
  const random = new Random(2)
  for (const length of [0, 1, 16, 63, 64, 65, 200]) {
    const secret = bytesOf(random, length)
    const digest = hmacSha256(secret)
    for (const size of [0, 1, 55, 56, 63, 64, 65, 500]) {
      const bytes = bytesOf(random, size)
      const expected = createHmac('sha256', secret).update(bytes).digest('base64url')
      assert.equal(base64Url(digest(bytes)), expected, `${length} and ${size} bytes`)
      assert.equal(base64Url(digest(bytes)), expected, 'again')
    }
  }
})

test('bytes are written as node:buffer writes them, at every length', () => {
  const random = new Random(3)
  for (let length = 0; length < 40; length++) {
    const bytes = bytesOf(random, length)
    assert.equal(base64Url(bytes), Buffer.from(bytes).toString('base64url'))
  }
})

test('text has distinct bytes: those of UTF-8 up to U+FFFF, and lone surrogates stay distinct', () => {
  const text = 'a\0\x7f\x80\u07ff\u0800\uffff é ￿'
  assert.deepEqual(unitBytes(text), new Uint8Array(Buffer.from(text)))
  const alike = ['\ud800', '\ud801', '\udc00', '\ufffd', '\ud800\udc00', '\udc00\ud800', '\u{10000}'.repeat(2)]
  assert.equal(new Set(alike.map((each) => unitBytes(each).join())).size, alike.length)
})
