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
