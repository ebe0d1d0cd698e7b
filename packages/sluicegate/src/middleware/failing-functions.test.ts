import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type PlainRequest, plainFacts, statusOf } from 'sluicegate-testkit/adapters/http-client.js'
import { unhandledRejections } from 'sluicegate-testkit/unhandled-rejections.js'
import { allOf, gcra, tokenBucket } from '../index.js'
import { Middleware } from './middleware.js'
import type { MiddlewareOptions } from './middleware-options.js'

const TWO = tokenBucket({ name: 'two', limit: 2, window: '10s' })

test('when several functions of a request fail, one error is reported, and no rejection is unhandled', async () => {
  const rejects = async (): Promise<never> => {
    throw new Error('seen')
  }
  const throws = (): never => {
    throw new Error('seen')
  }
  const one = gcra({ name: 'one', limit: 1, window: '1h' })
  const faults: MiddlewareOptions<PlainRequest>[] = [
    { policy: TWO, cost: rejects, key: throws },
    { policy: TWO, cost: rejects, key: rejects },
    { policy: allOf([TWO, one]), key: [rejects, throws] },
    { policy: allOf([TWO, one]), key: [rejects, rejects, throws] },
    {
      limits: [
        { policy: TWO, key: rejects },
        { policy: one, key: throws },
      ],
    },
    {
      limits: [
        { policy: TWO, cost: rejects },
        { policy: one, cost: rejects, key: throws },
      ],
    },
  ]
  const reasons = await unhandledRejections(async () => {
    for (const options of faults) {
      const middleware = new Middleware<PlainRequest>(options)
      await assert.rejects(async () => middleware.handle(plainFacts({}), {}), /seen/)
    }
  })
  assert.deepEqual(reasons, [])
})

test('what costs nothing needs no key, whenever the cost is known', async () => {
  for (const cost of [() => 0, async () => 0]) {
    const middleware = new Middleware<PlainRequest>({ policy: TWO, cost, key: () => undefined })
    assert.equal(statusOf(await middleware.handle(plainFacts({}), {})), 200)
  }
})
