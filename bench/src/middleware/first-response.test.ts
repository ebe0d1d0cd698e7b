import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type FirstResponse, firstResponse } from './first-response.js'

const TOLD = 'HTTP/1.1 429 Too Many Requests\r\nRetry-After: 7\r\nContent-Length: 5\r\n\r\nlater'
const CHUNKED = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\na\r\n0123456789\r\n0\r\n\r\n'
const EMPTY = 'HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n'

/** What is read of bytes that come one at a time. */
function readSlowly(bytes: string): FirstResponse[] {
  const found: FirstResponse[] = []
  let received = ''
  for (const byte of bytes) {
    received += byte
    const response = firstResponse(received)
    if (response === undefined) continue
    found.push(response)
    received = received.slice(response.length)
  }
  assert.equal(received, '')
  return found
}

test('responses are found however few bytes come at a time', () => {
  const lengths = [TOLD, CHUNKED, EMPTY, TOLD].map(({ length }) => length)
  assert.deepEqual(
    readSlowly(TOLD + CHUNKED + EMPTY + TOLD),
    [429, 200, 403, 429].map((status, i) => ({ status, length: lengths[i] })),
  )
})

test('what follows a response is left to the next', () => {
  assert.deepEqual(firstResponse(CHUNKED + TOLD), { status: 200, length: CHUNKED.length })
  assert.deepEqual(firstResponse(TOLD + CHUNKED), { status: 429, length: TOLD.length })
})

test('a response without a length is an error', () => {
  assert.throws(() => firstResponse('HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nok'), /no length or chunked encoding/)
})
