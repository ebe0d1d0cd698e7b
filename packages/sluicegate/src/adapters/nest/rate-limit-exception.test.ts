import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createLimiter, fixedWindow } from '../../index.js'
import { RateLimitException } from './rate-limit-guard.js'

const decision = createLimiter(fixedWindow({ limit: 1, window: 'day' })).take('all', 2)

test('the body for filters is an object if it is valid JSON, and text otherwise', () => {
  const made = (body: string): string | object =>
    new RateLimitException({ passes: false, status: 429, headers: [['Content-Type', 'application/json']], body, decision }).getResponse()
  assert.deepEqual(['{"calm":"down"}', 'calm down', 'null', '"calm"'].map(made), [{ calm: 'down' }, 'calm down', 'null', '"calm"'])
})
