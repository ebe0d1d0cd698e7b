import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fixedWindow } from '../index.js'
import type { CancelSignal } from '../shared/backend.js'
import { encodingsOf } from '../shared/steps/policy-encoding.js'
import type { CommandRunner } from './command-runner.js'
import { RedisKeys } from './redis-keys.js'
import { RedisScripts } from './redis-scripts.js'

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
