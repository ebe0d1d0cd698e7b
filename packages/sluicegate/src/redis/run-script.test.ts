import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { after, test } from 'node:test'
import { seedsFrom, shortOrLong } from 'sluicegate-testkit'
import { compareLeases } from 'sluicegate-testkit/leases/compare-leases.js'
import { LEASED_ENCODINGS } from 'sluicegate-testkit/leases/lease-history.js'
import { ownRedis, serverOfFile } from 'sluicegate-testkit/redis/own-redis.js'
import { clientsForRun, SERVER_CLIENTS } from 'sluicegate-testkit/redis/redis-clients.js'
import { StoreError } from '../errors.js'
import { fixedWindow } from '../index.js'
import type { CancelSignal } from '../shared/backend.js'
import { encodingsOf } from '../shared/steps/policy-encoding.js'
import { answerIn, leaseIn } from '../shared/steps/step-answers.js'
import type { CommandRunner } from './command-runner.js'
import { RedisKeys } from './redis-keys.js'
import { RedisScripts } from './redis-scripts.js'
import { runScript, type Script } from './run-script.js'
import { runnerFor } from './runner-for.js'
import { SCRIPTS } from './scripts.gen.js'

const server = await serverOfFile()

function scriptOf(source: string): Script {
  return { source, sha1: createHash('sha1').update(source).digest('hex') }
}

const asIs = (reply: unknown): unknown => reply

/** A runner that remembers what it sent. */
function watched(runner: CommandRunner): CommandRunner & { readonly sent: string[] } {
  const sent: string[] = []
  return {
    ...runner,
    sent,
    send: (key, command, recall) => {
      sent.push(command[0] as string)
      return runner.send(key, command, recall)
    },
  }
}

test('the hashes in the library are those of its scripts', () => {
  for (const { source, sha1 } of Object.values(SCRIPTS)) assert.equal(scriptOf(source).sha1, sha1)
})

for (const kind of clientsForRun(SERVER_CLIENTS)) {
  test(`with ${kind.name} a script goes by its hash, in full when the server does not know it, and again after SCRIPT FLUSH`, async () => {
    await using open = await kind.open([server])
    const runner = watched(runnerFor(open.client))
    const script = scriptOf(`return redis.call('INCR', KEYS[1]) -- ${kind.name}`)
    const run = () => runScript(runner, script, [`flush ${kind.name}`], [], asIs)
    assert.equal(await run(), 1)
    assert.equal(await run(), 2)
    assert.deepEqual(runner.sent.splice(0), ['EVALSHA', 'EVAL', 'EVALSHA'])
    await server.ask('SCRIPT', 'FLUSH')
    assert.equal(await run(), 3)
    assert.deepEqual(runner.sent.splice(0), ['EVALSHA', 'EVAL'])
  })

  test(`with ${kind.name} nothing but NOSCRIPT is tried again`, async () => {
    await using open = await kind.open([server])
    const runner = watched(runnerFor(open.client))
    const script = scriptOf("redis.call('INCR', KEYS[1]) return redis.error_reply(ARGV[1])")
    const errors = [
      'ERR NOSCRIPT',
      'ERR No matching script. Please use EVAL.',
      'NOSCRIPTS are known',
      'OOM',
      'BUSY a script runs',
      'WRONGTYPE of key',
    ]
    await runScript(runner, script, [`loaded ${kind.name}`], ['ERR first'], asIs).catch(() => undefined)
    for (const error of errors) {
      runner.sent.length = 0
      const key = `${error} ${kind.name}`
      await assert.rejects(runScript(runner, script, [key], [error], asIs))
      assert.deepEqual(runner.sent, ['EVALSHA'], error)
      assert.equal(await server.ask('GET', (kind.keyPrefix ?? '') + key), '1')
    }
  })
}

test('many calls that find a script unknown at once are each done once', async () => {
  for (const kind of clientsForRun(SERVER_CLIENTS)) {
    await using open = await kind.open([server])
    const script = scriptOf(`return redis.call('INCR', KEYS[1]) -- at once, ${kind.name}`)
    const replies = await Promise.all(
      Array.from({ length: 50 }, () => runScript(runnerFor(open.client), script, [`at once ${kind.name}`], [], asIs)),
    )
    assert.deepEqual(
      replies.map(Number).sort((a, b) => a - b),
      Array.from({ length: 50 }, (_, i) => i + 1),
    )
  }
})

for (const kind of clientsForRun(SERVER_CLIENTS)) {
  test(`with ${kind.name} of many calls that find a script unknown at once one sends it in full, or where there are many connections a few`, async () => {
    await using open = await kind.open([server])
    const runner = watched(runnerFor(open.client))
    const script = scriptOf(`return redis.call('INCR', KEYS[1]) -- once in full, ${kind.name}`)
    const replies = await Promise.all(Array.from({ length: 50 }, () => runScript(runner, script, [`in full ${kind.name}`], [], asIs)))
    assert.deepEqual(
      replies.map(Number).sort((a, b) => a - b),
      Array.from({ length: 50 }, (_, i) => i + 1),
    )
    const inFull = runner.sent.filter((name) => name === 'EVAL').length
    assert.ok(inFull >= 1 && inFull <= (kind.name.startsWith('a pool') ? 25 : 1), `${inFull} in full`)
  })
}

test('a script unknown to the server is not sent in full for a cancelled call', async () => {
  for (const kind of clientsForRun(SERVER_CLIENTS)) {
    await using open = await kind.open([server])
    const runner = watched(runnerFor(open.client))
    let isUnknown = false
    const recall = {
      get aborted() {
        return isUnknown
      },
      addEventListener: () => undefined,
      removeEventListener: () => undefined,
    }
    const gone: CommandRunner = {
      ...runner,
      send: (...call) =>
        runner.send(...call).catch((error) => {
          isUnknown = true
          throw error
        }),
    }
    const key = `gone ${kind.name}`
    const script = scriptOf(`return redis.call('INCR', KEYS[1]) -- ${key}`)
    await assert.rejects(runScript(gone, script, [key], [], asIs, recall))
    assert.equal(await server.ask('EXISTS', (kind.keyPrefix ?? '') + key), '0')
  }
})

const { encodings } = encodingsOf(fixedWindow({ limit: 10, window: 'month' }))

/** How often a server is asked that knows of another window of the calendar. */
async function timesAsked(isGone: boolean): Promise<number> {
  let count = 0
  const runner: CommandRunner = {
    client: 'none',
    isCluster: false,
    serverOf: () => undefined,
    send: () => {
      count++
      return Promise.reject(new Error(`WINDOW ${Date.now() * 1000}`))
    },
    sendToAll: () => Promise.resolve([]),
  }
  const recall: CancelSignal = { aborted: isGone, addEventListener: () => undefined, removeEventListener: () => undefined }
  const store = new RedisScripts(runner, new RedisKeys('test'))
  await assert.rejects(store.ask('take', [{ encoding: encodings[0] as (typeof encodings)[0], key: 'a', tokens: 1 }], recall), /WINDOW/)
  return count
}

test('a server whose clock is in another calendar window gets a second call, but not for a cancelled call', async () => {
  assert.deepEqual(await Promise.all([timesAsked(false), timesAsked(true)]), [2, 1])
})

const TIMES = { blockedUs: 0, untilFreeUs: 0, untilNewUs: 0, waitUs: 0 }

test('one number is the debt after a take that passed, below 0 that of a key that would not bear it', () => {
  const all = Number.MAX_SAFE_INTEGER - 1
  for (const [reply, standing] of [
    [7, { done: true, debt: 7 }],
    ['7', { done: true, debt: 7 }],
    [-1, { done: false, debt: 0 }],
    [-8, { done: false, debt: 7 }],
    [-1 - all, { done: false, debt: all }],
  ] as const) {
    assert.deepEqual(answerIn(reply, 1), { states: [{ ...TIMES, ...standing }] })
  }
})

test('three are that, and two times', () => {
  assert.deepEqual(answerIn([-4, 20, 30], 1), { states: [{ ...TIMES, done: false, debt: 3, untilFreeUs: 20, untilNewUs: 30 }] })
})

test('seven are the whole answer of one policy, thirteen of two', () => {
  const standing = { done: true, debt: 1, blockedUs: 2, untilFreeUs: 3, untilNewUs: 4, waitUs: 5 }
  assert.deepEqual(answerIn([9, 1, 1, 2, 3, 4, 5], 1), { nowUs: 9, states: [standing] })
  const other = { ...standing, done: false }
  assert.deepEqual(answerIn([9, 1, 1, 2, 3, 4, 5, 0, 1, 2, 3, 4, 5], 2), { nowUs: 9, states: [standing, other] })
})

test('whatever else a server says is an outage, and no decision', () => {
  const isOutage = (error: unknown): boolean => error instanceof StoreError && error.code === 'OUTAGE'
  for (const reply of [null, undefined, '', 'OK', {}, true, 1.5, Number.NaN, 2 ** 53, [], [1], [null, 1, 2], [1, 2, 3, 4, 5, 6]]) {
    assert.throws(() => answerIn(reply, 1), isOutage, JSON.stringify(reply))
    assert.throws(() => leaseIn(reply), isOutage, JSON.stringify(reply))
  }
  for (const reply of [7, [7, 1, 1], [9, 1, 1, 2, 3, 4, 5]]) assert.throws(() => answerIn(reply, 2), isOutage, JSON.stringify(reply))
})

// What the histories of leases run on is what the scripts do.

const SEQUENCES = shortOrLong(25, 50)

const redis = await ownRedis()
after(() => redis.stop())

for (const encoding of LEASED_ENCODINGS) {
  test(`the authority of the histories decides as the scripts of a ${encoding} do, also for several versions of a policy`, async () => {
    await compareLeases(redis.runner, encoding, [...seedsFrom(1, SEQUENCES)])
  })
}
