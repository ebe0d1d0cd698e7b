import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ReplyWriter } from './reply-writer.js'

test('replies are written in both versions of the protocol', () => {
  const written = (protocol: 2 | 3): string => {
    const reply = new ReplyWriter(1)
    reply.protocol = protocol
    reply.simple('OK')
    reply.error('ERR no\r\nway')
    reply.map(1)
    reply.bulk('kéy')
    reply.null()
    reply.array(2)
    reply.bulk(Buffer.from([0, 255]))
    reply.integer(-1)
    return reply.take().toString('latin1')
  }
  assert.equal(written(2), '+OK\r\n-ERR no way\r\n*2\r\n$4\r\nk\xc3\xa9y\r\n$-1\r\n*2\r\n$2\r\n\0\xff\r\n:-1\r\n')
  assert.equal(written(3), '+OK\r\n-ERR no way\r\n%1\r\n$4\r\nk\xc3\xa9y\r\n_\r\n*2\r\n$2\r\n\0\xff\r\n:-1\r\n')
})

test('integers of any size are written in decimal digits', () => {
  const numbers = [0, 7, 9, 10, 99, 100, 12_345, 999_999_999, 1_000_000_000, 2 ** 53 - 1, -1, -10, -999_999_999, -(2 ** 53 - 1)]
  const reply = new ReplyWriter()
  for (const number of numbers) reply.integer(number)
  assert.equal(reply.take().toString(), numbers.map((number) => `:${number}\r\n`).join(''))
})

test('a writer is empty after its replies were taken, and they stay what they were', () => {
  const reply = new ReplyWriter()
  reply.simple('first')
  const first = reply.take()
  reply.simple('other')
  assert.equal(first.toString(), '+first\r\n')
  assert.equal(reply.length, 8)
})
