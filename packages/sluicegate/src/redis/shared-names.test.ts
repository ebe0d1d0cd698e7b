import assert from 'node:assert/strict'
import { EventEmitter } from 'node:events'
import { test } from 'node:test'
import { HeldScripts } from 'sluicegate-testkit/redis/held-scripts.js'
import { createLimiter } from '../create-limiter.js'
import { allOf, fixedWindow, type Policy, tokenBucket } from '../index.js'
import type { CommandRunner } from './command-runner.js'
import { scriptedStore } from './redis.js'
import { noteName, warnOfMissingListener } from './redis-warnings.js'
import { runnerFor } from './runner-for.js'

const BUCKET = tokenBucket({ limit: 5, window: '1m' })

function client(): CommandRunner {
  return { client: 'node-redis', isCluster: false, serverOf: () => undefined, send: async () => 0, sendToAll: async () => [] }
}

/** The warnings that come of limiters of one client. */
function warningsOf(policies: readonly Policy[], { prefixes = ['a'], closes = false } = {}): string[] {
  const runner = client()
  const messages: string[] = []
  for (const [i, policy] of policies.entries()) {
    const limiter = createLimiter(policy, { store: scriptedStore(new HeldScripts()) })
    noteName(runner, prefixes[i % prefixes.length] as string, limiter, (code, message) => messages.push(`${code}: ${message}`))
    if (closes) limiter.close()
  }
  return messages
}

test('limiters that share a budget only because their numbers are the same are warned about', () => {
  const [first, ...more] = warningsOf([BUCKET, tokenBucket({ limit: 5, window: 60_000 })])
  assert.match(first ?? '', /^SLUICEGATE_SHARED_NAME: two limiters .* 'token-bucket-5-1m', .* name: 'login'/)
  assert.deepEqual(more, [])
  assert.equal(warningsOf([fixedWindow({ limit: 5, window: 'day' }), fixedWindow({ limit: 5, window: 'day' })]).length, 1)
  assert.equal(
    warningsOf([allOf([BUCKET, fixedWindow({ limit: 5, window: 'day' })]), BUCKET]).length,
    1,
    'a part of several is kept under its own name',
  )
})

test('names that were given, other numbers, other prefixes and limiters that were closed are no fault', () => {
  const named = tokenBucket({ limit: 5, window: '1m', name: 'login' })
  assert.deepEqual(warningsOf([named, named]), [])
  assert.deepEqual(warningsOf([BUCKET, tokenBucket({ limit: 6, window: '1m' })]), [])
  assert.deepEqual(warningsOf([BUCKET, BUCKET], { prefixes: ['a', 'b'] }), [])
  assert.deepEqual(warningsOf([BUCKET, BUCKET], { closes: true }), [])
  assert.deepEqual([...warningsOf([BUCKET]), ...warningsOf([BUCKET])], [], 'each client has its own names')
})

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
