import assert from 'node:assert/strict'
import { test } from 'node:test'
import { partitionKey, type SipSecret, sipHash, sipSecret } from './partition-key.js'

/** The secret of the authors' vectors: the bytes 00 to 0f. */
const SECRET = sipSecret('000102030405060708090a0b0c0d0e0f')

/** Of the message 00 01 02 ... of so many bytes, as the reference implementation lists them. */
const VECTORS: readonly (readonly [bytes: number, hash: string])[] = [
  [0, '310e0edd47db6f72'],
  [2, '5a4fa9d909806c0d'],
  [4, 'b7877127e09427cf'],
  [6, 'cee3fe586e46c9cb'],
  [8, '6224939a79f5f593'],
  [10, 'f3b9dd94c5bb5d7a'],
]

function hashBytes(text: string, secret: SipSecret): Buffer {
  const bytes = Buffer.alloc(8)
  const [low, high] = sipHash(text, secret)
  bytes.writeUInt32LE(low, 0)
  bytes.writeUInt32LE(high, 4)
  return bytes
}

function message(bytes: number): string {
  return Buffer.from(Array.from({ length: bytes }, (_, i) => i)).toString('utf16le')
}

for (const [bytes, hash] of VECTORS) {
  test(`SipHash-2-4 gives the authors’ value for ${bytes} bytes`, () => {
    assert.equal(hashBytes(message(bytes), SECRET).toString('hex'), hash)
  })
}

test('a partition key is what OpenSSL makes of the key in UTF-16, low byte first, and the bytes of the secret in their order', () => {
  // openssl mac -macopt hexkey:000102030405060708090a0b0c0d0e0f -macopt size:8 -in key SipHash
  assert.equal(partitionKey('203.0.113.7', SECRET), `:${Buffer.from('3A4E6556EFC6F021', 'hex').toString('base64')}:`)
})

test('a partition key is the hash in base64 as a byte sequence', () => {
  for (let bytes = 0; bytes < 600; bytes += 2) {
    assert.equal(partitionKey(message(bytes), SECRET), `:${hashBytes(message(bytes), SECRET).toString('base64')}:`)
  }
})

test('keys that differ in one unit, lone surrogates included, have different hashes', () => {
  const keys = ['a', 'b', 'aa', 'a\0', '\0a', '\ud800', '\udc00', '\ud800\udc00', '\u00e9', 'e\u0301', '']
  assert.equal(new Set(keys.map((key) => partitionKey(key, SECRET))).size, keys.length)
})

test('secrets are random, and 128 bits', () => {
  const secrets = Array.from({ length: 20 }, () => sipSecret())
  assert.equal(new Set(secrets.map(String)).size, 20)
  for (const secret of secrets) assert.equal(secret.length, 4)
})
