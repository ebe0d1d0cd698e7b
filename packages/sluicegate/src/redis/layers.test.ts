import assert from 'node:assert/strict'
import { test } from 'node:test'
import { clientsOfFile } from 'sluicegate-testkit/redis/own-redis.js'
import { clientsForRun, type OpenClient, SERVER_CLIENTS } from 'sluicegate-testkit/redis/redis-clients.js'
import { layerSuite, passed } from 'sluicegate-testkit/suites/layer-suite.js'
import { listAndShadowSuite } from 'sluicegate-testkit/suites/list-and-shadow-suite.js'
import { createLimiter } from '../create-limiter.js'
import { fixedWindow, type Policy } from '../index.js'
import { redis } from './redis.js'

/** Those that most fleets have; the others run the same scripts by the same port. */
const KINDS = clientsForRun(SERVER_CLIENTS.filter(({ name }) => name === 'node-redis' || name === 'ioredis'))

const opened = await clientsOfFile(KINDS)

for (const kind of KINDS) {
  let limiters = 0
  for (const mode of ['exact', 'leased'] as const) {
    for (const suite of [layerSuite, listAndShadowSuite])
      suite({
        name: `Redis, ${mode}, ${kind.name}`,
        make: (policy, options) =>
          createLimiter(policy, {
            store: redis((opened.get(kind.name) as OpenClient).client, { prefix: `${kind.name} ${++limiters}` }),
            ...(policy.algorithm !== 'concurrency' && { mode }),
            outage: 'closed',
            timeout: 60_000,
            ...options,
          }),
      })
  }
}

test('policies of one name are versions of one policy: what a key spent under one counts under the other', async () => {
  const plan = (limit: number): Policy => fixedWindow({ limit, window: '365d', name: 'plan' })
  let limit = 30
  using limiter = createLimiter(plan(5), {
    store: redis((opened.get('node-redis') as OpenClient).client),
    mode: 'exact',
    policyFor: () => plan(limit),
  })
  assert.equal(await passed(limiter, 'k', 40), 30)
  limit = 50
  assert.equal(await passed(limiter, 'k', 40), 20)
  limit = 40
  assert.equal(await passed(limiter, 'k', 5), 0)
})
