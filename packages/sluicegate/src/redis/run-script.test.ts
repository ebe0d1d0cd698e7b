import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { test } from 'node:test'
import { serverOfFile } from 'sluicegate-testkit/redis/own-redis.js'
import { clientsForRun, SERVER_CLIENTS } from 'sluicegate-testkit/redis/redis-clients.js'
import type { CommandRunner } from './command-runner.js'
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
