import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createLimiter, fixedWindow } from '../../index.js'
import { RateLimitException } from './rate-limit-exception.js'

const decision = createLimiter(fixedWindow({ limit: 1, window: 'day' })).take('all', 2)

test('a body is an object to filters if it is one of JSON, and text if it only says so', () => {
  const made = (body: string): string | object =>
    new RateLimitException({ passes: false, status: 429, headers: [['Content-Type', 'application/json']], body, decision }).getResponse()
  assert.deepEqual(['{"calm":"down"}', 'calm down', 'null', '"calm"'].map(made), [{ calm: 'down' }, 'calm down', 'null', '"calm"'])
})
