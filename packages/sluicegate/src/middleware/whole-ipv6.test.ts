import assert from 'node:assert/strict'
import { test } from 'node:test'
import { plainFacts } from 'sluicegate-testkit/adapters/http-client.js'
import { freshWarnings } from 'sluicegate-testkit/unhandled-rejections.js'
import { keyFinder } from './key-source.js'

freshWarnings()

test('a function that returns a whole IPv6 address is warned of, once', async () => {
  const codes: unknown[] = []
  const listen = (warning: Error & { code?: string }): void => void codes.push(warning.code)
  process.on('warning', listen)
  let key = ''
  const find = keyFinder(() => key)
  const keys = ['203.0.113.7', '::1', 'user:7', '2001:db8:0:4200::/56', '::ffff:203.0.113.7', '00:11:22:33:44:55:66:77']
  for (key of keys) assert.equal(find(plainFacts({}), {}), key)
  await new Promise(setImmediate)
  assert.deepEqual(codes, [])
  for (key of ['2001:db8:0:4217::1', '2001:db8:0:4217::2']) assert.equal(find(plainFacts({}), {}), key)
  await new Promise(setImmediate)
  process.off('warning', listen)
  assert.deepEqual(codes, ['SLUICEGATE_IPV6_WHOLE'])
})
