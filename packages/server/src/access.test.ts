import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Access } from './access.js'

test('a token of scope decide may decide and not administer, one of scope admin both', () => {
  const access = new Access([
    { name: 'app', secret: 'app-secret', scope: 'decide' },
    { name: 'ops', secret: 'ops-secret', scope: 'admin' },
  ])
  const may = (secret: string | undefined): boolean[] => [access.allows(secret, 'decide'), access.allows(secret, 'admin')]
  assert.deepEqual(may('app-secret'), [true, false])
  assert.deepEqual(may('ops-secret'), [true, true])
  for (const wrong of [undefined, '', 'app-secre', 'app-secret ', 'APP-SECRET', 'x'.repeat(100_000)])
    assert.deepEqual(may(wrong), [false, false])
})

test('requests need a token only where one is configured for them; administration always does', () => {
  const none = new Access([])
  assert.deepEqual([none.needsToken('decide'), none.needsToken('admin'), none.has('admin')], [false, true, false])
  const admin = new Access([{ name: 'ops', secret: 's', scope: 'admin' }])
  assert.deepEqual([admin.needsToken('decide'), admin.has('decide'), admin.has('admin')], [false, true, true])
  const both = new Access([{ name: 'app', secret: 's', scope: 'decide' }])
  assert.deepEqual([both.needsToken('decide'), both.has('admin')], [true, false])
})
