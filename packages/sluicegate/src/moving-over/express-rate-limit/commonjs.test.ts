import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import { test } from 'node:test'
import * as imported from './index.js'

test('require() answers with the middleware, which has all else beside it', () => {
  const required = createRequire(import.meta.url)('./index.js')
  assert.equal(typeof required({ windowMs: imported.MINUTE, limit: 100 }).resetKey, 'function')
  assert.throws(() => required({ limit: -1 }), { option: 'limit' })
  const { 'module.exports': _, ...names } = imported as Record<string, unknown>
  assert.deepEqual({ ...required }, names)
})
