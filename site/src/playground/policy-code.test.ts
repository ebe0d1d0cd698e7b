import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseConfig } from 'sluicegate-config/read-config.js'
import { ALGORITHMS, policyOf, type RatePolicy } from './decide.js'
import { policyCode } from './policy-code.js'

const RATES: readonly RatePolicy[] = ALGORITHMS.map((algorithm) => ({ algorithm, limit: 10, window: '30s', burst: 4 }))

/** The numbers of a policy, which its name is no part of. */
function numbersOf({ algorithm, limit, windowMs, burst }: ReturnType<typeof policyOf>) {
  return { algorithm, limit, windowMs, burst }
}

for (const rate of RATES) {
  const [typeScript, service, envoy] = policyCode([rate])

  test(`the service reads the YAML of ${rate.algorithm} as the same policy`, () => {
    const [served] = parseConfig(service?.text ?? '').policies
    assert.deepEqual(numbersOf(served?.policy as never), numbersOf(policyOf(rate)))
  })

  test(`the service reads Envoy's YAML of ${rate.algorithm}`, () => {
    assert.ok(parseConfig(envoy?.text ?? ''))
    assert.throws(() => parseConfig((envoy?.text ?? '').replace('rate_limit', 'rate_limits')))
  })

  test(`the program of ${rate.algorithm} runs`, async () => {
    const text = `${(typeScript?.text ?? '').replace("'sluicegate'", `'${import.meta.resolve('sluicegate')}'`)}\nexport { limiter }`
    const { limiter } = await import(`data:text/javascript,${encodeURIComponent(text)}`)
    assert.deepEqual(numbersOf(limiter.policy), numbersOf(policyOf(rate)))
    limiter.close()
  })
}

test('two policies have a name each', () => {
  const [typeScript, service] = policyCode(RATES.slice(0, 2))
  assert.match(typeScript?.text ?? '', /const second = createLimiter\(gcra/)
  assert.equal(parseConfig(service?.text ?? '').policies.length, 2)
})
