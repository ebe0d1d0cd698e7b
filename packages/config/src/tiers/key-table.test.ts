import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MessageChannel, receiveMessageOnPort } from 'node:worker_threads'
import fc from 'fast-check'
import { KeyTable, type KeyTableArrays } from './key-table.js'

/** As another thread receives it. */
function sent(table: KeyTable): KeyTable {
  const { port1, port2 } = new MessageChannel()
  port1.postMessage(table.arrays)
  const arrays = receiveMessageOnPort(port2)?.message as KeyTableArrays
  port1.close()
  return new KeyTable(arrays)
}

const KEY = fc.oneof(
  fc.string(),
  fc.string({ unit: 'binary' }),
  fc.constantFrom('', '\u00ff', '\u0100', '\ud800', '\ufffd', 'a\0b', 'constructor'),
)

test('it finds what a map finds, in this thread and in another', () => {
  const given = fc.array(fc.tuple(KEY, fc.nat(499)), { maxLength: 200 })
  fc.assert(
    fc.property(given, fc.array(KEY), (rows, others) => {
      const table = new KeyTable()
      const map = new Map<string, number>()
      for (const [key, number] of rows) {
        assert.equal(table.add(key, number), !map.has(key))
        if (!map.has(key)) map.set(key, number)
      }
      for (const each of [table, sent(table)]) {
        assert.deepEqual([...each.keys()], [...map.keys()])
        for (const key of [...map.keys(), ...others]) assert.equal(each.get(key), map.get(key), JSON.stringify(key))
      }
    }),
    { seed: 20_261_130, numRuns: 300 },
  )
})

test('a hundred thousand keys are found, and nobody looks long for one that is not there', () => {
  const table = new KeyTable()
  for (let i = 0; i < 100_000; i++) assert.ok(table.add(`tenant-${i}`, i % 500))
  for (let i = 0; i < 100_000; i++) assert.equal(table.get(`tenant-${i}`), i % 500)
  for (let i = 0; i < 1_000; i++) assert.equal(table.get(`other-${i}`), undefined)
  // Longer than any key: not even read.
  assert.equal(table.get('x'.repeat(100_000_000)), undefined)
})

test('keys that were chosen to meet under a known hash are found as fast as others', () => {
  const chosen = meetingKeys(4_000)
  const msOf = (keys: readonly string[]): number => {
    const startMs = performance.now()
    const table = new KeyTable()
    for (const key of keys) assert.equal(table.add(key, 1), true)
    return performance.now() - startMs
  }
  const plain = chosen.map((_, i) => `k${i}\u0100`)
  msOf(plain)
  assert.ok(msOf(chosen) < 20 * msOf(plain) + 20)
})

/** All with the same FNV-1a over their units: of three units after a beginning, the first makes up for the others. */
function meetingKeys(count: number): string[] {
  const prime = 0x01000193
  let inverse = 1
  for (let i = 0; i < 5; i++) inverse = Math.imul(inverse, 2 - Math.imul(prime, inverse))
  const keys: string[] = []
  for (let n = 0; ; n++) {
    const start = `a${n}`
    let state = 0x811c9dc5
    for (let i = 0; i < start.length; i++) state = Math.imul(state ^ start.charCodeAt(i), prime)
    for (let last = 0x100; last < 0x110; last++) {
      const before = Math.imul(Math.imul(0x12345678, inverse) ^ last, inverse)
      for (let middle = 0x100; middle < 0xd000; middle++) {
        const first = (Math.imul(before ^ middle, inverse) ^ state) >>> 0
        if (first < 0x100 || first >= 0xd000) continue
        keys.push(start + String.fromCharCode(first, middle, last))
        if (keys.length === count) return keys
      }
    }
  }
}
