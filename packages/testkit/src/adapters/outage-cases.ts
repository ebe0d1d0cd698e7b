import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { fixedWindow } from '../../../sluicegate/dist/index.js'
import type { FleetLimiter, RedisLimiterOptions } from '../../../sluicegate/dist/redis/index.js'
import { limitersOfTest } from '../redis/limiters-of-test.js'
import { everyNth } from '../run-length.js'
import type { Harness } from './harness.js'
import { ask } from './http-client.js'
import type { StartApp } from './listening.js'

const POLICY = fixedWindow({ name: 'fleet', limit: 10, window: 'day' })
async function store(t: TestContext) {
  const { server, limiter } = await limitersOfTest(t, true)
  return {
    limiter: (options: Partial<RedisLimiterOptions>): FleetLimiter => limiter(POLICY, { mode: 'exact', ...options }),
    stop: () => server.kill(),
  }
}

/** A limit held by Redis, and what happens without its server. */
export function outageCases<Request>({ name }: Harness<Request>, start: StartApp<Request>): void {
  const modes = [
    [{ outage: 'open' }, undefined, 20, undefined],
    [{ outage: 'closed' }, undefined, 0, 503],
    [{ outage: 'local', localShare: 0.5 }, undefined, 5, 503],
    [{ outage: 'closed' }, 'open', 20, undefined],
    [{ outage: 'open' }, 'closed', 0, 503],
  ] as const

  test(`${name}: a limit of a fleet holds for parallel requests`, async (t) => {
    const { limiter } = await store(t)
    const { port, site } = await start(t, { all: limiter({}) })
    const replies = await Promise.all(Array.from({ length: 50 }, () => ask(port, '/ok')))
    assert.deepEqual([replies.filter(({ status }) => status === 200).length, site.handled], [10, 10])
    assert.ok(replies.every(({ status }) => status === 200 || status === 429))
  })

  for (const [i, [options, onOutage, passing, status]] of modes.entries()) {
    const choice = onOutage === undefined ? '' : `, overruled by onOutage '${onOutage}'`
    everyNth(i, modes.length)(`${name}: without its store, and outage '${options.outage}'${choice}, ${passing} of 20 pass`, async (t) => {
      const { limiter, stop } = await store(t)
      const { port, site } = await start(t, { all: { limiter: limiter(options), ...(onOutage && { onOutage }) } })
      assert.equal((await ask(port, '/ok')).status, 200)
      await stop()
      const replies = []
      for (let i = 0; i < 20; i++) replies.push(await ask(port, '/ok'))
      const passed = replies.filter((reply) => reply.status === 200)
      assert.equal(passed.length, passing)
      assert.ok(passed.every(({ headers }) => headers['ratelimit-policy'] !== undefined && headers.ratelimit === undefined))
      for (const reply of replies.filter((each) => each.status !== 200)) {
        assert.equal(reply.status, status)
        assert.ok(Number(reply.headers['retry-after']) >= 1)
        assert.match(JSON.parse(reply.text).type, /#temporary-reduced-capacity$/)
      }
      assert.deepEqual(site.errors, [])
    })
  }
}
