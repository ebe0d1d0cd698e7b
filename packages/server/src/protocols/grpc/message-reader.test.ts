import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { framed, MessageReader } from './message-reader.js'

const messages = fc.array(fc.uint8Array({ maxLength: 40 }), { maxLength: 6 })

test('messages come out whole, wherever the bytes are split', () => {
  fc.assert(
    fc.property(messages, fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1, maxLength: 9 }), (sent, sizes) => {
      const bytes = Buffer.concat(sent.map(framed))
      const reader = new MessageReader(100)
      const read: number[][] = []
      for (let at = 0, i = 0; at < bytes.length; i++) {
        const size = sizes[i % sizes.length] as number
        reader.read(bytes.subarray(at, at + size), (message) => read.push([...message]))
        at += size
      }
      assert.deepEqual(
        read,
        sent.map((message) => [...message]),
      )
      assert.equal(reader.isInside, false)
    }),
  )
})

test('a message beyond the bound is refused before it arrives, and so is a compressed one', () => {
  const prefix = (compressed: number, length: number): Uint8Array => {
    const bytes = Buffer.alloc(5)
    bytes[0] = compressed
    bytes.writeUInt32BE(length, 1)
    return bytes
  }
  const read = (bytes: Uint8Array): void => new MessageReader(100).read(bytes, () => assert.fail())
  assert.throws(() => read(prefix(0, 101)), { name: 'GrpcError', status: 8 })
  assert.throws(() => read(prefix(0, 0xffff_ffff)), { name: 'GrpcError', status: 8 })
  assert.throws(() => read(prefix(1, 10)), { name: 'GrpcError', status: 12 })
})
