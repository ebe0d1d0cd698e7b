import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fixedWindow } from '../index.js'
import type { CancelSignal } from '../shared/cancel-signal.js'
import type { CommandRunner } from './command-runner.js'
import { RedisStore } from './redis-store.js'
import { storePoliciesOf } from './store-form.js'
import { StoreKeys } from './store-keys.js'

const { forms } = storePoliciesOf(fixedWindow({ limit: 10, window: 'month' }))

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
  const store = new RedisStore(runner, new StoreKeys('test'))
  await assert.rejects(store.ask('take', [{ form: forms[0] as (typeof forms)[0], key: 'a', tokens: 1 }], recall), /WINDOW/)
  return count
}

test('a server whose clock is in another window of the calendar is asked once more, but not for somebody who has gone', async () => {
  assert.deepEqual(await Promise.all([timesAsked(false), timesAsked(true)]), [2, 1])
})
