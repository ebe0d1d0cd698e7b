import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { envoyDomains } from 'sluicegate-testkit/service/running-service.js'
import { type FoundLimit, findLimit, keyOf } from './find-rule.js'
import { HitCounts, OTHER } from './hit-counts.js'
import { DEFAULT_LIMIT_SETTINGS, limitSettings, matchesParts } from './limit-settings.js'

const digest = (text: string): string => `${text.length}`

function finder(descriptors: string) {
  const [{ domain, rules } = assert.fail()] = envoyDomains(`domain: d\ndescriptors:\n${descriptors}`)
  return (...entries: (readonly [key: string, value: string])[]): FoundLimit | undefined =>
    findLimit(
      domain,
      rules,
      entries.map(([key, value]) => ({ key, value })),
      digest,
    )
}

const LIMIT = 'rate_limit: { unit: minute, requests_per_unit: 1 }'

test('the rule of the value comes first, then the first pattern that matches, then that of the key alone', () => {
  const find = finder(`
  - { key: a, value: foobar, ${LIMIT} }
  - { key: a, value: foo*, ${LIMIT} }
  - { key: a, value: f*, ${LIMIT} }
  - { key: a, ${LIMIT} }
`)
  const pathOf = (value: string) => find(['a', value])?.limit.path
  assert.deepEqual(['foobar', 'foox', 'fx', 'x', ''].map(pathOf), ['d.a_foobar', 'd.a_foo*', 'd.a_f*', 'd.a', 'd.a'])
  assert.equal(find(['b', 'foobar']), undefined)
})

test('a limit applies to exactly the entries that lead to it', () => {
  const find = finder(`
  - key: a
    value: x
    ${LIMIT}
    descriptors:
      - { key: b, ${LIMIT} }
  - key: a
    value: listed
`)
  assert.equal(find(['a', 'x'])?.limit.path, 'd.a_x')
  assert.equal(find(['a', 'x'], ['b', '1'])?.limit.path, 'd.a_x.b')
  assert.equal(find(['a', 'x'], ['c', '1']), undefined)
  assert.equal(find(['a', 'x'], ['b', '1'], ['c', '1']), undefined)
  assert.equal(find(['b', '1']), undefined)
  assert.equal(find(['a', 'listed']), undefined, 'a descriptor without a limit exempts its value')
  assert.equal(find(), undefined)
})

test('values that the file leaves open have a budget each; those of a shared pattern have one together', () => {
  const find = finder(`
  - { key: any, ${LIMIT} }
  - { key: each, value: f*, ${LIMIT} }
  - key: shared
    value: f*
    share_threshold: true
    ${LIMIT}
    descriptors:
      - { key: b, ${LIMIT} }
`)
  const key = (...entries: (readonly [string, string])[]) => find(...entries)?.key
  assert.notEqual(key(['any', '1']), key(['any', '2']))
  assert.notEqual(key(['each', 'f1']), key(['each', 'f2']))
  assert.equal(key(['shared', 'f1']), key(['shared', 'f2']))
  assert.equal(key(['shared', 'f1'], ['b', '1']), key(['shared', 'f2'], ['b', '1']))
  assert.notEqual(key(['shared', 'f1'], ['b', '1']), key(['shared', 'f1'], ['b', '2']))
})

test('metrics have the path of the rule, with values only where the file asks for them', () => {
  const find = finder(`
  - key: plain
    value: x*
    descriptors: [{ key: b, ${LIMIT} }]
  - key: valued
    value: x*
    value_to_metric: true
    descriptors: [{ key: b, value_to_metric: true, ${LIMIT} }]
  - { key: detailed, detailed_metric: true, ${LIMIT} }
  - key: shared
    value: x*
    share_threshold: true
    value_to_metric: true
    descriptors: [{ key: b, detailed_metric: true, ${LIMIT} }]
`)
  const metric = (...entries: (readonly [string, string])[]) => find(...entries)?.metric
  assert.equal(metric(['plain', 'x1'], ['b', '2']), 'd.plain_x*.b')
  assert.equal(metric(['valued', 'x1'], ['b', '2']), 'd.valued_x1.b_2')
  assert.equal(metric(['valued', 'x1'], ['b', '']), 'd.valued_x1.b')
  assert.equal(metric(['detailed', '7']), 'd.detailed_7')
  assert.equal(metric(['shared', 'x1'], ['b', '2']), 'd.shared_x*.b_2')
})

test('different lists of values give different keys of at most 1,024 units, and a single value reads as itself', () => {
  const value = fc.string({ unit: fc.constantFrom('a', '|', '\\', '0', 'e', 'd'), maxLength: 4 })
  const list = fc.array(value, { maxLength: 3 })
  fc.assert(
    fc.property(list, list, (one, other) => {
      const same = one.length === other.length && one.every((text, i) => text === other[i])
      assert.equal(keyOf(one, digest) === keyOf(other, digest), same, `${JSON.stringify(one)} ${JSON.stringify(other)}`)
      assert.ok(keyOf(one, digest).length > 0)
    }),
    { numRuns: 20_000 },
  )
  assert.equal(keyOf(['alice'], digest), 'alice')
  assert.ok(keyOf(['x'.repeat(5_000)], digest).length <= 1_024)
})

test('a pattern matches what the regular expression with .* in the place of each * matches', () => {
  const text = fc.string({ unit: fc.constantFrom('a', 'b', '/', '.'), maxLength: 12 })
  const pattern = fc.string({ unit: fc.constantFrom('a', 'b', '/', '.', '*'), maxLength: 8 })
  fc.assert(
    fc.property(pattern, text, (shape, value) => {
      const expected = new RegExp(`^${shape.replace(/[./]/g, '\\$&').replaceAll('*', '.*')}$`).test(value)
      assert.equal(matchesParts(shape.split('*'), value), expected, `${shape} ${value}`)
    }),
    { numRuns: 20_000 },
  )
})

test('prefix and suffix of a pattern do not share characters of a value', () => {
  assert.equal(matchesParts('aba*ba'.split('*'), 'aba'), false)
  assert.equal(matchesParts('aba*ba'.split('*'), 'ababa'), true)
})

test('a hostile pattern costs no more than its length times that of the value', () => {
  const parts = `${'a*'.repeat(500)}b`.split('*')
  const startMs = performance.now()
  assert.equal(matchesParts(parts, 'a'.repeat(100_000)), false)
  assert.ok(performance.now() - startMs < 1_000)
})

test('names with values of requests are bounded in number, and never crowd out those of rules', () => {
  const hits = new HitCounts()
  for (let i = 0; i < 20_000; i++) hits.count(`edge.user_${i}`, 'allowed', 1, true)
  hits.count('edge.rule', 'denied', 2, false)
  const names = new Map(hits.entries())
  assert.equal(names.size, 2_002)
  assert.equal(names.get(OTHER)?.allowed, 18_000)
  assert.equal(names.get('edge.rule')?.denied, 2)
})

test('a long value is cut, and halves of characters count as one name', () => {
  const hits = new HitCounts()
  for (const end of ['a', 'b']) hits.count(`edge.user_${'x'.repeat(2_000)}${end}`, 'allowed', 1, true)
  for (const half of ['\ud800', '\ud801']) hits.count(`edge.user_${half}`, 'allowed', 1, true)
  const names = Array.from(hits.entries(), ([name, { allowed }]) => [name.length, allowed])
  assert.deepEqual(names, [
    [201, 2],
    [11, 2],
  ])
})

test('a name that is both of a rule and of values is one series', () => {
  const hits = new HitCounts()
  hits.count('edge.user_a', 'allowed', 1, true)
  hits.count('edge.user_a', 'denied', 2, false)
  assert.deepEqual([...hits.entries()], [['edge.user_a', { allowed: 1, denied: 2, over_quota: 0, shadowed: 0, refunded: 0 }]])
})

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
