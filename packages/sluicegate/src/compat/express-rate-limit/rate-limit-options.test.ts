import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type RateLimitOptions, rateLimit } from './index.js'

/** The message of the error for invalid options. */
function mend(options: unknown): string {
  try {
    rateLimit(options as RateLimitOptions)
  } catch (error) {
    return String(error)
  }
  return 'taken'
}

test('an option that does not exist is refused', () => {
  assert.match(mend({ limitt: 5 }), /^PolicyError: limitt: is not one of windowMs, limit, /)
  assert.doesNotMatch(mend({ limitt: 5 }), /onLimitReached/)
  assert.match(mend('5 a minute'), /^PolicyError: options: must be an object/)
})

test('the error of an unsupported option has the replacement', () => {
  assert.match(mend({ store: {} }), /^PolicyError: store: .*redis\(client\)/)
  assert.match(mend({ store: null }), /^PolicyError: store: .*redis\(client\)/)
  assert.match(mend({ limit: () => 5 }), /^PolicyError: limit: .*policy: \(request\) => .*SluicegateStore/)
  assert.match(mend({ max: () => 5 }), /^PolicyError: limit: .*policy: \(request\)/)
  assert.match(mend({ onLimitReached: () => undefined }), /^PolicyError: onLimitReached: .*handler/)
  assert.match(mend({ draft_polli_ratelimit_headers: true }), /^PolicyError: draft_polli_ratelimit_headers: .*draft-6/)
  assert.match(mend({ delayAfter: 1 }), /^PolicyError: delayAfter: .*slowDown: \{ after, delay, maxDelay \}/)
  assert.match(mend({ identifier: () => 'api' }), /^PolicyError: identifier: must be a string/)
})

test('a value out of range is refused by the name that it was given by', () => {
  const cases: readonly [unknown, string][] = [
    [{ windowMs: '1m' }, 'windowMs'],
    [{ windowMs: 0 }, 'windowMs'],
    [{ windowMs: 400 * 86_400_000 }, 'windowMs'],
    [{ limit: 1.5 }, 'limit'],
    [{ limit: Number.POSITIVE_INFINITY }, 'limit'],
    [{ limit: null }, 'limit'],
    [{ statusCode: 99 }, 'statusCode'],
    [{ standardHeaders: 'draft-9' }, 'standardHeaders'],
    [{ identifier: 'ü' }, 'identifier'],
    [{ retryAfter: -1 }, 'retryAfter'],
    [{ retryAfter: '1' }, 'retryAfter'],
    [{ skip: true }, 'skip'],
    [{ keyGenerator: 'ip' }, 'keyGenerator'],
    [{ handler: 'deny' }, 'handler'],
    [{ requestWasSuccessful: true }, 'requestWasSuccessful'],
    [{ create: 'redis' }, 'create'],
    [{ logger: {} }, 'logger'],
    [{ logger: null }, 'logger'],
    [{ logger: { error: 'to the console' } }, 'logger'],
    [{ logger: console.error }, 'logger'],
  ]
  for (const [options, option] of cases) assert.match(mend(options), new RegExp(`^PolicyError: ${option}: `), JSON.stringify(options))
})

test('what is undefined is not given', () => {
  const names = ['store', 'onLimitReached', 'limit', 'windowMs', 'validate', 'nothing']
  assert.equal(mend(Object.fromEntries(names.map((name) => [name, undefined]))), 'taken')
  assert.equal(mend({ validate: { trustProxy: false }, logger: console, skipFailedRequests: true }), 'taken')
})
