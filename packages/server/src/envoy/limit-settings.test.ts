import assert from 'node:assert/strict'
import { test } from 'node:test'
import { DEFAULT_LIMIT_SETTINGS, limitSettings } from './limit-settings.js'

const noFault = (variable: string, reason: string): void => assert.fail(`${variable}: ${reason}`)

test('without variables there are the defaults', () => {
  assert.deepEqual(limitSettings({}, noFault), DEFAULT_LIMIT_SETTINGS)
  assert.deepEqual(
    limitSettings({ SHADOW_MODE: '', QUOTA_MODE: 'false', LIMIT_RESPONSE_HEADERS_ENABLED: '0' }, noFault),
    DEFAULT_LIMIT_SETTINGS,
  )
})

test('each variable of Envoy’s ratelimit service is read', () => {
  const env = { SHADOW_MODE: 'true', QUOTA_MODE: 'T', RESPONSE_DYNAMIC_METADATA: '1', LIMIT_RESPONSE_HEADERS_ENABLED: 'TRUE' }
  assert.deepEqual(limitSettings(env, noFault), {
    shadowMode: true,
    quotaMode: true,
    dynamicMetadata: true,
    headers: { limit: 'RateLimit-Limit', remaining: 'RateLimit-Remaining', reset: 'RateLimit-Reset' },
  })
  const names = { LIMIT_LIMIT_HEADER: 'x-limit', LIMIT_REMAINING_HEADER: 'x-left', LIMIT_RESET_HEADER: 'x-reset' }
  assert.deepEqual(limitSettings({ ...env, ...names }, noFault).headers, { limit: 'x-limit', remaining: 'x-left', reset: 'x-reset' })
})

test('a variable that is neither true nor false is a fault', () => {
  const faults: string[] = []
  limitSettings({ SHADOW_MODE: 'yes' }, (variable, reason) => faults.push(`${variable} ${reason}`))
  assert.deepEqual(faults, ['SHADOW_MODE must be true or false, not "yes"'])
})
