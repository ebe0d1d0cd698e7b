import assert from 'node:assert/strict'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { test } from 'node:test'
import { concurrency, type Decision, fixedWindow, type Permit } from '../../../sluicegate/dist/index.js'
import { type LayerHarness, passed, refused } from './layer-suite.js'

const FREE = fixedWindow({ limit: 30, window: '365d', name: 'free' })
const SLOTS = concurrency({ limit: 2, name: 'slots' })
const NEVER = Number.POSITIVE_INFINITY

/** Lists and shadow: the same over every kind of limiter. */
export function listAndShadowSuite({ name, make }: LayerHarness): void {
  test(`${name}: no verb changes listed keys, and nothing is sent`, async () => {
    using limiter = make(FREE, { allow: ['friend'], deny: ['foe'], hotKeys: 5 })
    for (const [key, allowed, remaining, retryAfterMs] of [
      ['friend', true, 30, 0],
      ['foe', false, 0, NEVER],
    ] as const) {
      const listed = { allowed, limit: 30, remaining, retryAfterMs, resetAfterMs: 0, policy: 'free', source: 'memory' }
      for (const cost of [1, 50]) {
        const bound = limiter.key(key)
        for (const now of [limiter.take(key, cost), limiter.peek(key, cost), bound.take(cost), bound.peek(cost)])
          assert.deepEqual(now, listed)
        const booked = await limiter.reserve(key, cost)
        const changes = [limiter.refund(key, cost), limiter.penalize(key, cost), limiter.block(key, '1h'), limiter.reset(key)]
        const later = [limiter.wait(key, { cost }), booked.decision, booked.settle(cost + 1), booked.cancel(), ...changes]
        for (const decision of await Promise.all<Decision>(later)) assert.deepEqual(decision, listed)
        assert.deepEqual([booked.allowed, booked.waitMs], [allowed, retryAfterMs])
      }
    }
    assert.deepEqual(limiter.hotKeys(), { demand: [], denials: [] })
    assert.equal(await passed(limiter, 'k', 40), 30)
  })

  test(`${name}: a function is asked each time, and misuse is refused for listed keys as for others`, async () => {
    const foes = new Set<string>()
    using limiter = make(FREE, { deny: (key) => foes.has(key), allow: ['friend'] })
    const bound = limiter.key('k')
    assert.equal((await bound.take()).allowed, true)
    foes.add('k')
    assert.equal((await bound.take()).retryAfterMs, NEVER)
    for (const key of ['friend', 'k', 'other']) {
      await refused(() => limiter.take(key, 0), { code: 'COST_INVALID', option: 'cost' })
      await refused(() => limiter.refund(key, 0), { code: 'COST_INVALID', option: 'tokens' })
      await refused(() => limiter.block(key, -1), { code: 'DURATION_INVALID' })
      await refused(() => limiter.wait(key, { cost: 0 }), { code: 'COST_INVALID' })
      const reason = new Error('no longer wanted')
      await refused(() => limiter.wait(key, { signal: AbortSignal.abort(reason) }), reason)
    }
    using later = make(FREE, { deny: (async () => false) as never })
    await refused(() => later.take('k'), { code: 'OPTION_INVALID', option: 'deny' })
  })

  test(`${name}: subscribers hear of denials by the list, and in the shadow`, async () => {
    using limiter = make(FREE, { deny: ['foe'], shadow: true })
    // By key: a primary in this process tells of its denials as well.
    const heard = new Map<string, boolean>()
    const listen = (event: unknown): void => {
      const { key, decision } = event as { key: string; decision: Decision }
      heard.set(key, decision.allowed)
    }
    subscribe('sluicegate:denial', listen)
    await limiter.take('foe')
    await limiter.take('k', 31)
    unsubscribe('sluicegate:denial', listen)
    assert.deepEqual(Object.fromEntries(heard), { foe: false, k: false })
  })

  test(`${name}: in shadow mode everything passes, would-be denials are flagged and not counted, and no call waits`, async () => {
    using limiter = make(FREE, { shadow: true })
    assert.equal(await passed(limiter, 'k', 25), 25)
    await limiter.penalize('late', 25)
    const late = await limiter.reserve('late', 10)
    assert.deepEqual([late.allowed, late.waitMs, late.decision.wouldDeny], [true, 0, true])
    await late.settle(50)
    const now = await limiter.reserve('now', 4)
    assert.deepEqual([now.allowed, now.waitMs, now.decision.wouldDeny], [true, 0, undefined])
    await now.cancel()
    for (let i = 0; i < 5; i++) assert.equal((await limiter.take('k')).wouldDeny, undefined)
    for (const decision of [await limiter.take('k'), await limiter.peek('k'), await limiter.wait('k'), await limiter.key('k').take()]) {
      assert.deepEqual([decision.allowed, decision.wouldDeny, decision.retryAfterMs], [true, true, 0])
    }
    assert.deepEqual([(await limiter.block('x', '1h')).wouldDeny, (await limiter.take('x')).wouldDeny], [true, true])
  })

  test(`${name}: permits of the shadow and of lists hold nothing, and are like any other to their holder`, async () => {
    using limiter = make(SLOTS, { shadow: true, allow: ['friend'] })
    const take = async (key: string): Promise<Permit> => (await limiter.take(key)) as Permit
    const [first, second, third, friend] = [await take('k'), await take('k'), await take('k'), await take('friend')]
    assert.deepEqual([first.wouldDeny, second.wouldDeny, third.wouldDeny, friend.wouldDeny], [undefined, undefined, true, undefined])
    for (const permit of [third, friend]) {
      const did = [await permit.heartbeat(), await permit.release(), await permit.release(), await permit.heartbeat()]
      assert.deepEqual(did, [true, true, false, false])
    }
    assert.equal((await take('k')).wouldDeny, true)
    assert.equal(await first.release(), true)
    assert.equal((await take('k')).wouldDeny, undefined)
  })
}
