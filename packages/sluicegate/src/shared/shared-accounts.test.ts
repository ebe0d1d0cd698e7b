import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createLimiter } from '../create-limiter.js'
import { allOf, fixedWindow, levels, type Policy, tokenBucket } from '../index.js'
import { policiesOf } from '../policy/policy.js'
import { storedNames } from '../policy/stored-name.js'
import { RedisKeys } from '../redis/redis-keys.js'
import { casStore } from '../store/cas.js'
import { storeHead } from '../store/store-key.js'
import { memoryStore } from '../store-testing/memory-store.js'
import { noteAccounts } from './shared-accounts.js'

const BUCKET = tokenBucket({ limit: 5, window: '1m' })

function perUser(limit: number, name?: string): Policy {
  return levels({ org: BUCKET, user: tokenBucket({ limit, window: '1m' }) }, name === undefined ? {} : { name })
}

/** The warnings that come of limiters over one store. */
function warningsOf(policies: readonly Policy[], { prefixes = ['a'], closes = false } = {}): string[] {
  const place = {}
  const messages: string[] = []
  for (const [i, policy] of policies.entries()) {
    const limiter = createLimiter(policy, { store: casStore(memoryStore()) })
    const accounts = storedNames(policy).map((name) => `${prefixes[i % prefixes.length]} ${name}`)
    noteAccounts(place, accounts, limiter, (code, message) => messages.push(`${code}: ${message}`))
    if (closes) limiter.close()
  }
  return messages
}

test('limiters that share a budget only because their numbers are the same are warned about', () => {
  const [first, ...more] = warningsOf([BUCKET, tokenBucket({ limit: 5, window: 60_000 })])
  assert.match(first ?? '', /^SLUICEGATE_SHARED_NAME: two limiters .* 'token-bucket-5-1m', .* name: 'login'/)
  assert.deepEqual(more, [])
  assert.equal(warningsOf([fixedWindow({ limit: 5, window: 'day' }), fixedWindow({ limit: 5, window: 'day' })]).length, 1)
  assert.equal(warningsOf([allOf([BUCKET, fixedWindow({ limit: 5, window: 'day' })]), BUCKET]).length, 1)
})

test('levels of one name in two wholes without a name are warned about once, whatever their numbers', () => {
  const [first, ...more] = warningsOf([perUser(5), perUser(9_000)])
  assert.match(first ?? '', /^SLUICEGATE_SHARED_NAME: .* 'org', a policy of two wholes without a name: .* \{ name: 'requests' \}/)
  assert.deepEqual(more, [])
  assert.equal(warningsOf([perUser(5), perUser(5)]).length, 1)
})

test('names that were given, other numbers, other prefixes and limiters that were closed are no fault', () => {
  const named = tokenBucket({ limit: 5, window: '1m', name: 'login' })
  assert.deepEqual(warningsOf([named, named]), [])
  assert.deepEqual(warningsOf([perUser(5, 'requests'), perUser(5, 'tokens'), perUser(5)]), [])
  assert.deepEqual(warningsOf([perUser(5, 'requests'), perUser(6, 'requests')]), [], 'two versions of one policy')
  for (const [one, other] of [
    [BUCKET, BUCKET],
    [perUser(5), perUser(6)],
  ] as const) {
    assert.deepEqual(warningsOf([one, other], { prefixes: ['a', 'b'] }), [])
    assert.deepEqual(warningsOf([one, other], { closes: true }), [])
    assert.deepEqual([...warningsOf([one]), ...warningsOf([other])], [], 'each store has its own names')
  }
  assert.deepEqual(warningsOf([BUCKET, tokenBucket({ limit: 6, window: '1m' })]), [])
})

test('no other policy has the account of a level, whatever their names contain', () => {
  const keys = new RedisKeys('sluicegate')
  const texts = ['a', 'b', 'a:b', 'a/b', 'a%', '%2f.', '/', ':', ' ']
  const named = (name: string): Policy => tokenBucket({ limit: 5, window: '1m', name })
  const policies = [...texts.map(named), ...texts.flatMap((name) => texts.map((part) => allOf([named(part)], { name })))]
  const accounts = policies.map((policy) => [storedNames(policy)[0] as string, policiesOf(policy)[0] as Policy] as const)
  assert.equal(new Set(accounts.map(([name]) => keys.before('rate', name))).size, policies.length)
  assert.equal(new Set(accounts.map(([name, part]) => storeHead('sluicegate', part, name))).size, policies.length)
  const [org = ''] = storedNames(perUser(5, 'requests'))
  assert.deepEqual(
    [keys.before('rate', org), storeHead('sluicegate', BUCKET, org)],
    ['sluicegate:rate:requests:org:', 'sluicegate:token-bucket:requests/org:'],
  )
  assert.deepEqual(storedNames(perUser(5)), ['org', 'user'])
})
