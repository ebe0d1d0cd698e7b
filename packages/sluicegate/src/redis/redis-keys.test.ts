import assert from 'node:assert/strict'
import { EventEmitter } from 'node:events'
import { test } from 'node:test'
import { createClient } from '@redis/client'
import fc from 'fast-check'
import { Random, RedisProcess } from 'sluicegate-testkit'
import { PolicyError } from '../errors.js'
import { allOf, fixedWindow, type Policy, tokenBucket } from '../index.js'
import { encodingsOf } from '../shared/steps/policy-encoding.js'
import type { CommandRunner } from './command-runner.js'
import { hashSlot, RedisKeys } from './redis-keys.js'
import { warnOfMissingListener } from './redis-warnings.js'
import { runnerFor } from './runner-for.js'

interface Named {
  readonly prefix: string
  readonly encoding: string
  readonly policy: string
  readonly tag: string | undefined
  readonly key: string
}

/** The name of a key in the store. */
function nameOf({ prefix, encoding, policy, tag, key }: Named): string {
  const keys = new RedisKeys(prefix, tag)
  return keys.before(encoding, policy) + keys.after(key)
}

/** As a server sees it. */
function bytesOf(name: string): string {
  return Buffer.from(name, 'utf8').toString('hex')
}

/** What Redis hashes of a name: what stands between the first brace and the next closing one. */
function taggedPart(name: string): string | undefined {
  return /\{([^}]+)\}/.exec(name)?.[1]
}

/** Few characters, all with a meaning in some key format, so that names collide often. */
const TRICKY = ['a', ':', '{', '}', '%', '.', '7', 'd', '2', '5', '\ud800', '\udc00', '\ufffd', '\u{1f600}', '\0']
const text = (maxLength: number) => fc.array(fc.constantFrom(...TRICKY), { minLength: 1, maxLength }).map((letters) => letters.join(''))
const ascii = fc.array(fc.constantFrom('a', ':', '{', '}', '%', '.'), { minLength: 1, maxLength: 4 }).map((letters) => letters.join(''))
const named: fc.Arbitrary<Named> = fc.record({
  prefix: text(3),
  encoding: fc.constantFrom('rate', 'fixed-window', 'sliding-window', 'sliding-log', 'concurrency'),
  policy: ascii,
  tag: fc.option(text(3), { nil: undefined }),
  key: text(4),
})

const RUNS = { numRuns: 20_000, seed: 20_260_101 }

test('no two of prefix, encoding, policy, tag and key share a name', () => {
  const seen = new Map<string, string>()
  fc.assert(
    fc.property(named, (one) => {
      const owner = JSON.stringify([one.prefix, one.encoding, one.policy, one.tag ?? null, one.key])
      const bytes = bytesOf(nameOf(one))
      assert.equal(seen.get(bytes) ?? owner, owner)
      seen.set(bytes, owner)
    }),
    RUNS,
  )
})

test('a key by itself is its hash tag: it is in one slot under all policies, and others have one of their own', () => {
  fc.assert(
    fc.property(named, (one) => {
      const keys = new RedisKeys(one.prefix, one.tag)
      assert.equal(taggedPart(nameOf(one)), keys.hashedOf(one.key))
      assert.equal(keys.tagOf(one.key), one.tag ?? one.key)
    }),
    RUNS,
  )
})

test('names of ordinary keys can be read', () => {
  const keys = new RedisKeys('sluicegate')
  assert.equal(keys.before('rate', 'per user') + keys.after('user:42'), 'sluicegate:rate:per user:{user:42}')
  assert.equal(new RedisKeys('s', 'eu').after('user:42'), '{eu}user:42')
  assert.equal(new RedisKeys('s', (key: string) => key.slice(0, 4)).after('user:42'), '{user}user:42')
})

test('keys that mean something to JavaScript, and the longest, are keys as any other', () => {
  const keys = new RedisKeys('sluicegate')
  for (const key of ['__proto__', 'constructor', 'toString', '\ud800'.repeat(1024), '}'.repeat(1024), ' ', '\n']) {
    assert.equal(keys.tagOf(key), key)
    assert.equal(taggedPart(keys.after(key)), keys.hashedOf(key))
  }
  assert.equal(keys.after('__proto__'), '{__proto__}')
})

test('a prefix is 1 to 100 characters, a tag at least one', () => {
  const isInvalid = (option: string) => (error: unknown) =>
    error instanceof PolicyError && error.code === 'OPTION_INVALID' && error.option === option
  for (const prefix of ['', 'x'.repeat(101), 7, null, undefined]) assert.throws(() => new RedisKeys(prefix), isInvalid('prefix'))
  for (const tag of ['', 7, null, {}]) assert.throws(() => new RedisKeys('p', tag), isInvalid('hashTag'))
  for (const tag of ['', 7, null, undefined]) assert.throws(() => new RedisKeys('p', () => tag).after('k'), isInvalid('hashTag'))
  assert.doesNotThrow(() => new RedisKeys('x'.repeat(100), 't').after('k'))
})

test('no two policies of allOf share a name, whatever they are called', () => {
  const keys = new RedisKeys('sluicegate')
  const named = (name: string): Policy => tokenBucket({ limit: 10, window: '1m', name })
  const { encodings } = encodingsOf(allOf([named('a'), named('a'), named('a 2'), fixedWindow({ limit: 10, window: '1m', name: 'a' })]))
  assert.deepEqual(
    encodings.map(({ name, storedName }) => keys.before(name, storedName)),
    ['sluicegate:rate:a:', 'sluicegate:rate:a 3:', 'sluicegate:rate:a 2:', 'sluicegate:fixed-window:a 4:'],
  )
})

const LETTERS = ['a', 'Z', '0', ' ', ':', '{', '}', '%', 'ü', '漢', '\u{1f600}', '\ud800', '\n']

test('slots are those of the server: of 1,000 random keys, and of the names that they get', async () => {
  await using server = await RedisProcess.start({ args: ['--cluster-enabled', 'yes'] })
  const client = await createClient({ url: server.url }).connect()
  const random = new Random(20_260_102)
  const keys = new RedisKeys('sluicegate')
  const before = keys.before('rate', 'a {policy}: 50%')
  const slotOf = (name: string) => client.sendCommand(['CLUSTER', 'KEYSLOT', name])
  const compared = Array.from({ length: 1000 }, async () => {
    const key = Array.from({ length: random.integer(1, 20) }, () => LETTERS[random.integer(0, LETTERS.length - 1)]).join('')
    assert.equal(hashSlot(keys.hashedOf(key)), await slotOf(before + keys.after(key)), JSON.stringify(key))
    const plain = key.toWellFormed().replaceAll('{', '')
    assert.equal(hashSlot(plain), await slotOf(plain), JSON.stringify(plain))
  })
  await Promise.all(compared)
  client.destroy()
})

test('keys with braces of their own spread over the slots as others do', () => {
  const keys = new RedisKeys('sluicegate')
  const slots = new Set(Array.from({ length: 10_000 }, (_, i) => hashSlot(keys.hashedOf(`{tenant}:{${i % 7}}:${i}`))))
  // Of 10,000 thrown at random into 16,384 some 7,480 are met.
  assert.ok(slots.size > 7300, `${slots.size} slots`)
})

function client(): CommandRunner {
  return { client: 'node-redis', isCluster: false, serverOf: () => undefined, send: async () => 0, sendToAll: async () => [] }
}

test('the error for a promise of a client says to await it', () => {
  assert.throws(() => runnerFor(Promise.resolve({})), { code: 'CLIENT_INVALID', message: /is a promise of a client: await it/ })
  for (const wrong of [undefined, null, 'redis://localhost', 5]) assert.throws(() => runnerFor(wrong), { code: 'CLIENT_INVALID' })
})

test('a node-redis client without an error listener causes one warning, unless a listener is added in time', async () => {
  const codes: string[] = []
  const warn = (_: string, code: string): void => void codes.push(code)
  const [deaf, heard, late] = [client(), client(), client()]
  const [deafClient, heardClient, lateClient] = [new EventEmitter(), new EventEmitter(), new EventEmitter()]
  heardClient.on('error', () => undefined)
  for (let i = 0; i < 2; i++) warnOfMissingListener(deaf, deafClient, warn)
  warnOfMissingListener(heard, heardClient, warn)
  warnOfMissingListener(late, lateClient, warn)
  lateClient.on('error', () => undefined)
  warnOfMissingListener({ ...client(), client: 'ioredis' }, new EventEmitter(), warn)
  await new Promise((resolve) => setTimeout(resolve, 5))
  assert.deepEqual(codes, ['SLUICEGATE_NO_ERROR_LISTENER'])
})
