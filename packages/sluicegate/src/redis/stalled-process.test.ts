import assert from 'node:assert/strict'
import { test } from 'node:test'
import { shortOrLong } from 'sluicegate-testkit'
import { serverOfFile } from 'sluicegate-testkit/redis/own-redis.js'
import { clientsForRun, SERVER_CLIENTS } from 'sluicegate-testkit/redis/redis-clients.js'
import { turns } from 'sluicegate-testkit/turns.js'
import { createLimiter } from '../create-limiter.js'
import { tokenBucket } from '../policy/single-policy.js'
import { redis } from './redis.js'

// A process that does something else for longer than a call may take, while the server answers as ever.

const TIMEOUT_MS = 200
const STALL_MS = 300
const STALLS = shortOrLong(2, 5)
const POLICY = tokenBucket({ limit: 1000, window: '1d', name: 'p' })

const server = await serverOfFile()

/** As in a long computation nothing else of this thread goes on; without one, it costs no processor. */
function standStill(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)
}

/** When a call is made and when the process stands still. */
const ORDERS: Readonly<Record<string, (take: () => unknown) => Promise<void>>> = {
  'in the turn that asks': async (take) => {
    take()
    standStill(STALL_MS)
  },
  'once the question is written': async (take) => {
    take()
    await turns()
    await turns()
    standStill(STALL_MS)
  },
  'a little less than a time-out, and asks within': async (take) => {
    standStill(STALL_MS)
    take()
    standStill(TIMEOUT_MS - 1)
  },
}

for (const kind of clientsForRun(SERVER_CLIENTS)) {
  for (const [when, order] of Object.entries(ORDERS)) {
    test(`${kind.name}: a process that stands still ${when} has its answers nevertheless`, async () => {
      await using open = await kind.open([server])
      const prefix = `${kind.name} ${when}`
      const limiter = createLimiter(POLICY, {
        store: redis(open.client, { prefix }),
        mode: 'exact',
        outage: 'closed',
        timeout: TIMEOUT_MS,
      })
      // Whatever a client does at first, and a script that the server does not know, is over then.
      for (let i = 0; i < 3; i++) await limiter.peek('k')
      const before = limiter.stats()
      for (let i = 0; i < STALLS; i++) {
        const taken: unknown[] = []
        await order(() => taken.push(...Array.from({ length: 5 }, () => limiter.take('k'))))
        await Promise.all(taken)
      }
      const { storeFailures, storeCalls, admittedTokens } = limiter.stats()
      assert.deepEqual([storeFailures - before.storeFailures, storeCalls - before.storeCalls, admittedTokens], [0, STALLS * 5, STALLS * 5])
    })
  }
}
