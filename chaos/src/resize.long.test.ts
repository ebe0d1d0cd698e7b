import assert from 'node:assert/strict'
import { test } from 'node:test'
import { resize } from './resize.js'

// `npm run chaos` moves 5,000.
test('a fourth primary joins under load, gets 1,000 slots, gives them back and leaves: no error, and every take is charged once', async () => {
  const { clients } = await resize(1_000)
  assert.equal(clients.length, 2)
  for (const { name, takes, errors, wrongKeys } of clients) {
    assert.deepEqual({ name, errors, wrongKeys }, { name, errors: 0, wrongKeys: 0 })
    assert.ok(takes > 1000)
  }
})
