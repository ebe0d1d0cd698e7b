import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isSafeToRepeat, type SentRequest } from './retry-rule.js'

const request = (method: string): SentRequest => ({
  url: new URL('http://a/'),
  method,
  header: () => undefined,
  isRepeatable: true,
  signal: undefined,
  priority: 0,
})

/** Whether a GET, and a POST that was not redirected, may be sent again after an error. */
const afterError = (error: unknown): boolean[] =>
  ['GET', 'POST'].map((method) => isSafeToRepeat(request(method), { error, isRedirected: false }))

const fault = (code: string, syscall?: string): Error => Object.assign(new Error(code), { code, ...(syscall !== undefined && { syscall }) })

test('a host out of reach has seen nothing, a connection that lost it may have', () => {
  for (const code of ['EHOSTUNREACH', 'ENETUNREACH', 'ETIMEDOUT']) {
    assert.deepEqual(afterError(fault(code, 'connect')), [true, true], code)
    assert.deepEqual(afterError(fault(code, 'read')), [true, false], code)
    assert.deepEqual(afterError(new TypeError('fetch failed', { cause: fault(code, 'read') })), [true, false], code)
  }
})

test('failures that pass are like a 503: repeated only where that is safe', () => {
  for (const status of [408, 425, 502, 503, 504, 520, 521, 522, 523, 524, 529]) {
    const outcome = { status, isRedirected: false }
    assert.deepEqual([isSafeToRepeat(request('GET'), outcome), isSafeToRepeat(request('POST'), outcome)], [true, false], String(status))
  }
  for (const status of [500, 501, 505, 519, 525, 526, 530]) assert.equal(isSafeToRepeat(request('GET'), { status }), false, String(status))
})

test('of several addresses none must have been reached', () => {
  const refused = fault('ECONNREFUSED', 'connect')
  const unreachable = fault('ENETUNREACH', 'connect')
  const tried = (...errors: Error[]): Error =>
    Object.assign(new AggregateError(errors), { code: (errors[0] as Error & { code: string }).code })
  assert.deepEqual(afterError(new TypeError('fetch failed', { cause: tried(unreachable, refused) })), [true, true])
  assert.deepEqual(afterError(tried(unreachable, fault('ENETUNREACH', 'read'))), [true, false])
})

test('what came of a redirect, or may have, is no reason to repeat what it answered', () => {
  const refused = fault('ECONNREFUSED', 'connect')
  for (const outcome of [{ status: 429 }, { error: refused }]) {
    for (const [isRedirected, isSafe] of [
      [false, true],
      [true, false],
      [undefined, false],
    ] as const) {
      assert.equal(isSafeToRepeat(request('POST'), { ...outcome, isRedirected }), isSafe)
      assert.equal(isSafeToRepeat(request('DELETE'), { ...outcome, isRedirected }), true)
    }
  }
})

test('a refused HTTP/2 stream was not processed, a reset one may have been', () => {
  const stream = (name: string): Error =>
    Object.assign(new Error(`Stream closed with error code ${name}`), { code: 'ERR_HTTP2_STREAM_ERROR' })
  for (const [name, post, get] of [
    ['NGHTTP2_REFUSED_STREAM', true, true],
    ['NGHTTP2_INTERNAL_ERROR', false, false],
  ] as const) {
    const outcome = { error: stream(name), isRedirected: false }
    assert.deepEqual([isSafeToRepeat(request('POST'), outcome), isSafeToRepeat(request('GET'), outcome)], [post, get])
  }
})
