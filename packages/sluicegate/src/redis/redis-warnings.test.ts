import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { ClientOfflineError } from '@redis/client'
import { longTest, RedisProcess, until } from 'sluicegate-testkit'
import { clientsForRun, SERVER_CLIENTS } from 'sluicegate-testkit/redis/redis-clients.js'
import { freshWarnings } from 'sluicegate-testkit/unhandled-rejections.js'
import { createLimiter } from '../create-limiter.js'
import { tokenBucket } from '../policy/single-policy.js'
import { manualClock } from '../time/clock.js'
import type { CommandRunner } from './command-runner.js'
import { redis } from './redis.js'
import { warnAtStart } from './redis-warnings.js'
import { runnerFor } from './runner-for.js'

freshWarnings()

/** Servers that say of themselves what a test wants. */
function serversSaying(...infos: readonly string[]): CommandRunner {
  return { client: 'stub', isCluster: false, serverOf: () => undefined, send: async () => null, sendToAll: async () => infos }
}

function infoOf(fields: Readonly<Record<string, string>>): string {
  return Object.entries({ tcp_port: '7', maxmemory_policy: 'noeviction', role: 'master', redis_version: '7.2.4', ...fields })
    .map(([name, value]) => `${name}:${value}\r\n`)
    .join('')
}

async function warningsOf(runner: CommandRunner): Promise<string[]> {
  const codes: string[] = []
  await warnAtStart(runner, (_message, code) => codes.push(code))
  return codes
}

longTest('a server that may evict keys causes one warning, for any number of limiters and clients', async () => {
  await using server = await RedisProcess.start({ args: ['--maxmemory', '100mb', '--maxmemory-policy', 'allkeys-lru'] })
  const warnings: Error[] = []
  const listen = (warning: Error): void => void (warning.name === 'SluicegateWarning' && warnings.push(warning))
  process.on('warning', listen)
  for (const kind of SERVER_CLIENTS) {
    await using open = await kind.open([server])
    const calls = await server.callsOf('info')
    for (let i = 0; i < 5; i++)
      await createLimiter(tokenBucket({ limit: 10, window: '1s', name: `p${i}` }), { store: redis(open.client) }).take('k')
    await until('the warning', () => warnings.length > 0)
    // The one of these limiters, and that of the line above.
    assert.equal((await server.callsOf('info')) - calls, 2)
  }
  process.off('warning', listen)
  assert.equal(warnings.length, 1)
  assert.equal((warnings[0] as NodeJS.ErrnoException).code, 'SLUICEGATE_EVICTION')
  assert.match(String(warnings[0]?.message), new RegExp(`port ${server.port} evicts keys .*allkeys-lru.*set maxmemory-policy noeviction`))
})

test('a server that refuses calls until somebody mends it causes one warning, which says what to do', async () => {
  await using server = await RedisProcess.start()
  const warnings: NodeJS.ErrnoException[] = []
  const listen = (warning: NodeJS.ErrnoException): void => void (warning.code?.startsWith('SLUICEGATE_') && warnings.push(warning))
  process.on('warning', listen)
  for (const kind of clientsForRun(SERVER_CLIENTS)) {
    await using open = await kind.open([server])
    const limiter = createLimiter(tokenBucket({ limit: 10, window: '1s', name: 'refused' }), { store: redis(open.client), mode: 'exact' })
    await server.ask('CONFIG', 'SET', 'maxmemory', '1')
    for (let i = 0; i < 5; i++) assert.equal((await limiter.take('k')).source, 'outage')
    await server.ask('CONFIG', 'SET', 'maxmemory', '0')
    await until('the warning', () => warnings.length > 0)
    limiter.close()
  }
  process.off('warning', listen)
  assert.equal(warnings.length, 1)
  assert.match(String(warnings[0]?.message), /its memory is full: raise maxmemory, .*until then the option outage decides/)
})

test('a replica causes a warning, and a well-configured primary does not', async () => {
  await using primary = await RedisProcess.start()
  await using replica = await RedisProcess.start({ args: ['--replicaof', primary.host, String(primary.port)] })
  for (const kind of clientsForRun(SERVER_CLIENTS.filter(({ library }) => library !== 'valkey-glide'))) {
    await using ofReplica = await kind.open([replica])
    await using ofPrimary = await kind.open([primary])
    const expected = kind === SERVER_CLIENTS[0] ? ['SLUICEGATE_REPLICA'] : []
    assert.deepEqual(await warningsOf(runnerFor(ofReplica.client)), expected, kind.name)
    assert.deepEqual(await warningsOf(runnerFor(ofPrimary.client)), [])
  }
})

test('a server older than 6.2 causes a warning', async () => {
  const versions = {
    '2.8.24': true,
    '5.0.14': true,
    '6.0.16': true,
    '6.2.0': false,
    '7.0.15': false,
    '7.2.4': false,
    '8.4.0': false,
    '10.0.0': false,
  }
  for (const [version, isOld] of Object.entries(versions)) {
    const runner = serversSaying(infoOf({ redis_version: version, run_id: `version ${version}` }))
    assert.deepEqual(await warningsOf(runner), isOld ? ['SLUICEGATE_OLD_SERVER'] : [], version)
  }
})

test('each server of several is checked, with one warning for each fault', async () => {
  const faulty = infoOf({ maxmemory_policy: 'volatile-ttl', role: 'slave', redis_version: '5.0.0', run_id: 'faulty' })
  const other = infoOf({ maxmemory_policy: 'volatile-ttl', run_id: 'other' })
  assert.deepEqual(await warningsOf(serversSaying(faulty, faulty, other, infoOf({ run_id: 'fine' }))), [
    'SLUICEGATE_EVICTION',
    'SLUICEGATE_OLD_SERVER',
    'SLUICEGATE_REPLICA',
    'SLUICEGATE_EVICTION',
  ])
})

test('a server whose client had no connection yet, or knew no node, is checked when it has one', async () => {
  const clock = manualClock()
  let asked = 0
  const opening: CommandRunner = {
    ...serversSaying(),
    sendToAll: async () => {
      asked++
      if (asked === 1) throw new ClientOfflineError()
      return asked === 2 ? [] : [infoOf({ maxmemory_policy: 'allkeys-lru', run_id: 'opened late' })]
    },
  }
  const codes: string[] = []
  await warnAtStart(opening, (_message, code) => codes.push(code), clock.after)
  for (const pauseMs of [250, 500]) {
    assert.deepEqual(codes, [])
    clock.advance(pauseMs)
    await setImmediate()
  }
  assert.deepEqual(codes, ['SLUICEGATE_EVICTION'])
  clock.advance(1e6)
  assert.equal(asked, 3)
})

test('what a server does not tell is no fault, and is asked for again by the next limiter', async () => {
  let calls = 0
  const refusing: CommandRunner = {
    ...serversSaying(),
    sendToAll: () => Promise.reject(new Error(`NOPERM this user has no permissions to run the 'info' command (${++calls})`)),
  }
  assert.deepEqual(await warningsOf(refusing), [])
  assert.deepEqual(await warningsOf(refusing), [])
  assert.equal(calls, 2)
  assert.deepEqual(await warningsOf(serversSaying('')), [])
  assert.deepEqual(await warningsOf({ ...serversSaying(), sendToAll: async () => [undefined, 7, ['x']] }), [])
})
