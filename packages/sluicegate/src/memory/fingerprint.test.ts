import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Random, shortOrLong } from 'sluicegate-testkit'
import { fingerprint, high, low, randomSecret } from './fingerprint.js'

const KEYS = shortOrLong(200_000, 1_000_000)
const SECRET = [0x03020100, 0x07060504] as const

test('a fingerprint is the declared hash, as plain arithmetic of the paper computes it', () => {
  for (let seed = 0; seed < 3000; seed++) {
    const random = new Random(seed)
    const highestUnit = random.pick([0x7f, 0xff, 0xffff])
    const key = Array.from({ length: random.integer(1, 40) }, () => String.fromCharCode(random.integer(0, highestUnit))).join('')
    assert.equal(hashOf(key, ...SECRET), plainly(key, ...SECRET), JSON.stringify(key))
  }
})

test('the secret decides: another one gives other fingerprints', () => {
  const [k0, k1] = SECRET
  assert.notEqual(hashOf('key', k0, k1), hashOf('key', k0 ^ 1, k1))
  assert.notEqual(hashOf('key', k0, k1), hashOf('key', k0, k1 ^ 1))
  assert.notDeepEqual(randomSecret(), randomSecret())
})

test('keys of one unit repeated differ at every length and for every way to pack them into words', () => {
  const units = ['a', '\0', '\xff', '\u6161', '\u0100', '\ud800']
  const keys = units.flatMap((unit) => Array.from({ length: 1024 }, (_, i) => unit.repeat(i + 1)))
  assert.equal(new Set(keys.map((key) => hashOf(key, ...SECRET))).size, keys.length)
})

test('narrow units never pass for half as many wide ones, whatever stands before and behind', () => {
  for (const before of ['', 'abcd', 'ab', '\u6261']) {
    for (let quads = 1; quads <= 128; quads++) {
      for (const behind of ['', 'x', '\u7a7a']) {
        const narrow = before + 'abcd'.repeat(quads) + behind
        const wide = before + '\u6261\u6463'.repeat(quads) + behind
        assert.notEqual(hashOf(narrow, ...SECRET), hashOf(wide, ...SECRET), `${JSON.stringify(before)} ${quads} ${JSON.stringify(behind)}`)
      }
    }
  }
})

test(`${KEYS} similar keys have as many fingerprints, spread evenly by every bit`, () => {
  const seen = new Set<bigint>()
  const ones = new Array<number>(64).fill(0)
  for (let i = 0; i < KEYS; i++) {
    const hash = hashOf(`user:${i}`, ...SECRET)
    seen.add(hash)
    if (i % (KEYS / 10_000) === 0) for (let bit = 0; bit < 64; bit++) ones[bit] = (ones[bit] ?? 0) + Number((hash >> BigInt(bit)) & 1n)
  }
  assert.equal(seen.size, KEYS)
  // 10,000 fair coins show 5,000 +- 50; six times that is beyond chance.
  for (const [bit, count] of ones.entries()) assert.ok(Math.abs(count - 5000) < 300, `bit ${bit}: ${count} of 10,000`)
})

test('one bit of a key changes about half of the fingerprint', () => {
  let changed = 0
  for (let i = 0; i < 1000; i++) {
    const key = `key ${i}`
    const place = i % key.length
    const other = key.slice(0, place) + String.fromCharCode(key.charCodeAt(place) ^ (1 << (i % 7))) + key.slice(place + 1)
    changed += bitsOf(hashOf(key, ...SECRET) ^ hashOf(other, ...SECRET))
  }
  assert.ok(Math.abs(changed - 32_000) < 1000, `${changed} of 64,000 bits`)
})

function hashOf(key: string, k0: number, k1: number): bigint {
  fingerprint(key, k0, k1)
  return (BigInt(high >>> 0) << 32n) | BigInt(low >>> 0)
}

/** The words of a key: four units below 256 at a time while they last, then two at a time, then the odd one and the length. */
function wordsOf(key: string): number[] {
  const units = Array.from({ length: key.length }, (_, i) => key.charCodeAt(i))
  const words: number[] = []
  let i = 0
  for (; i + 4 <= units.length && units.slice(i, i + 4).every((unit) => unit < 256); i += 4)
    words.push(new DataView(Uint8Array.from(units.slice(i, i + 4)).buffer).getInt32(0, true))
  for (; i + 2 <= units.length; i += 2) words.push(new DataView(Uint16Array.from(units.slice(i, i + 2)).buffer).getInt32(0, true))
  return [...words, key.length * 65_536 + (units[i] ?? 0)]
}

function plainly(key: string, k0: number, k1: number): bigint {
  const v = Int32Array.of(k0, k1 ^ 0xee, 0x6c796765 ^ k0, 0x74656462 ^ k1) as unknown as [number, number, number, number]
  for (const word of wordsOf(key)) {
    v[3] ^= word
    sipRound(v)
    v[0] ^= word
  }
  v[2] ^= 0xee
  for (let round = 0; round < 3; round++) sipRound(v)
  return (BigInt((v[0] ^ v[2]) >>> 0) << 32n) | BigInt((v[1] ^ v[3]) >>> 0)
}

/** HalfSipHash's round, line by line as the paper's figure has it. */
function sipRound(v: [number, number, number, number]): void {
  v[0] += v[1]
  v[1] = rotated(v[1], 5) ^ v[0]
  v[0] = rotated(v[0], 16)
  v[2] += v[3]
  v[3] = rotated(v[3], 8) ^ v[2]
  v[0] += v[3]
  v[3] = rotated(v[3], 7) ^ v[0]
  v[2] += v[1]
  v[1] = rotated(v[1], 13) ^ v[2]
  v[2] = rotated(v[2], 16)
}

function rotated(word: number, by: number): number {
  return (word << by) | (word >>> (32 - by))
}

function bitsOf(word: bigint): number {
  return word.toString(2).replaceAll('0', '').length
}
