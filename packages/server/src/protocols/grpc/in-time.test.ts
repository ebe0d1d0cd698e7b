import assert from 'node:assert/strict'
import { test } from 'node:test'
import { grpcTimeoutMs, inTime } from './in-time.js'
import { STATUS } from './status.js'

test('a decision in memory is returned as it is, at once', () => {
  assert.equal(inTime('decided', { headers: {}, timeoutMs: 20 }), 'decided')
})

test('a decision that a store does not give while the client waits is an error before the client’s own', async () => {
  const startMs = performance.now()
  await assert.rejects(async () => inTime(new Promise(() => {}), { headers: {}, timeoutMs: 200 }), { status: STATUS.deadlineExceeded })
  // Timers may fire a millisecond early.
  assert.ok(performance.now() - startMs >= 149)
})

test('a decision in time is returned, and so is its error', async () => {
  const call = { headers: {}, timeoutMs: 60_000 }
  assert.equal(await inTime(Promise.resolve('decided'), call), 'decided')
  await assert.rejects(async () => inTime(Promise.reject(new Error('outage')), call), /outage/)
})

test('a client that says no time waits for as long as it takes', () => {
  const never = new Promise(() => {})
  assert.equal(inTime(never, { headers: {}, timeoutMs: undefined }), never)
})

test('each unit of grpc-timeout is read, and nothing else', () => {
  const read = ['2H', '3M', '4S', '20m', '500u', '1000000n', '99999999m'].map(grpcTimeoutMs)
  assert.deepEqual(read, [7_200_000, 180_000, 4_000, 20, 0.5, 1, 99_999_999])
  for (const wrong of ['', '20', 'm', '-1m', '1.5S', '999999999m', '1s', undefined, ['1S']]) assert.equal(grpcTimeoutMs(wrong), undefined)
})
