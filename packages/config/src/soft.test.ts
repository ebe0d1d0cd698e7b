import assert from 'node:assert/strict'
import { test } from 'node:test'
import { faultsOf, onePolicy } from 'sluicegate-testkit/service/running-service.js'
import { parseConfig } from './read-config.js'
import { shownConfig } from './shown-config.js'

const BUCKET = 'algorithm: token-bucket, limit: 10, window: 1m'
const LEVELS = `policies:
  api:
    soft: ['50%']
    levels:
      org: { ${BUCKET} }
      user: { ${BUCKET}, soft: ['80%', '100%'] }
`

test('soft limits are of a policy, and of each level its own or those of the whole', () => {
  const [policy] = parseConfig(onePolicy(`${BUCKET}, soft: ['80%']`)).policies
  assert.deepEqual(policy?.soft, new Map([['api', ['80%']]]))
  const [levels] = parseConfig(LEVELS).policies
  assert.deepEqual(
    levels?.soft,
    new Map([
      ['org', ['50%']],
      ['user', ['80%', '100%']],
    ]),
  )
  assert.match(shownConfig(parseConfig(LEVELS)), /soft:\n\s+- 50%/)
  assert.equal(parseConfig(onePolicy(BUCKET)).policies[0]?.soft, undefined)
})

test('shares that mean nothing are faults with their places', () => {
  const fault = (soft: string): string => faultsOf(onePolicy(`${BUCKET}, soft: ${soft}`)).join('\n')
  assert.equal(fault("['80']"), 'gate.yaml:2:64: policies.api.soft: must be shares from 1% to 1000%, not "80"')
  assert.match(fault("['0%']"), /from 1% to 1000%, not "0%"/)
  assert.match(fault("['1001%']"), /from 1% to 1000%, not "1001%"/)
  assert.match(fault('[]'), /must have 1 to 10 shares, not 0/)
  assert.match(fault('[80]'), /must be a list of shares/)
  assert.match(fault('80%'), /must be a list of shares/)
  assert.match(fault("['80%', '80.0%']"), /has a share more than once/)
})

test('a webhook has an address, and its secret and path are not shown', () => {
  const yaml = `${onePolicy(BUCKET)}webhook: { url: "https://hooks.example.com/T0/secret-path", secret: whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw, timeout: 2s }\n`
  const { webhook } = parseConfig(yaml)
  assert.deepEqual([webhook?.timeoutMs, webhook?.retries], [2_000, 5])
  const shown = shownConfig(parseConfig(yaml))
  assert.match(shown, /url: https:\/\/hooks.example.com\n/)
  assert.doesNotMatch(shown, /secret-path|MfKQ/)
  const fault = (options: string): string => faultsOf(`${onePolicy(BUCKET)}webhook: { ${options} }\n`).join('\n')
  assert.equal(fault('secret: 0123456789abcdef'), 'gate.yaml:3:1: webhook.url: is missing')
  assert.match(fault('url: "ftp://a/secret-path"'), /^gate.yaml:3:17: webhook.url: must be a URL with http or https(?!.*secret-path)/)
  assert.match(fault('url: "http://me:word@a/"'), /no user and password/)
  assert.match(fault('url: "http://a/", secret: short'), /16 to 1024 characters/)
  assert.match(fault('url: "http://a/", secret: "whsec_not base64!!"'), /base64 after whsec_/)
  assert.match(fault('url: "http://a/", retries: 21'), /from 0 to 20/)
  assert.match(fault('url: "http://a/", timeout: 1ms'), /from 100ms to 1m/)
})
