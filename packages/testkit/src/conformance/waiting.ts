import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Decision } from 'sluicegate'
import type { Awaitable } from '../../../sluicegate/dist/awaitable.js'
import { specOf } from '../kit.js'
import type { PolicySpec } from '../oracle/oracle.js'
import { oracleFor } from '../oracle/versioned-oracle.js'
import { shortOrLong } from '../run-length.js'
import { until } from '../servers/until.js'
import type { Fixture, Fixtures, MakePolicy } from './fixture.js'

/** `wait`, with every algorithm; time moves by `advance` alone. */
export function waiting(name: string, fixture: Fixtures, policyOf: MakePolicy): void {
  const threeAtOnce = policyOf({ limit: 3, window: '100ms', name: 'three' })
  /** Who waits for a store has to reach it; in memory that is so at once. */
  const arrived = async (settled: Fixture['settled']): Promise<void> => {
    if (fixture.store.source !== 'memory') await settled()
  }

  test(`${name}: who waits for what is there is answered at once, like a take`, async () => {
    const { limiter, atOnce } = await fixture(threeAtOnce)
    const { allowed, remaining, policy } = await atOnce(limiter.wait('k', { cost: 2 }))
    assert.deepEqual([allowed, remaining, policy], [true, 1, 'three'])
    assert.equal((await limiter.peek('k')).remaining, 1)
    assert.equal((await atOnce(limiter.wait('k'))).remaining, 0)
  })

  test(`${name}: who waits is let through in the order of arrival, each at its time to the millisecond`, async () => {
    const costs = [3, 1, 2, 1, 3, 1, 1, 2, 3, 3]
    const { limiter, clock, passing } = await fixture(threeAtOnce)
    const startMs = clock.nowMs()
    const answeredMs = costs.map(() => Number.POSITIVE_INFINITY)
    const answers = costs.map(async (cost, i) => {
      assert.equal((await limiter.wait('k', { cost })).allowed, true)
      answeredMs[i] = clock.nowMs() - startMs
    })
    const expectedMs = turnsMs(specOf(threeAtOnce), costs, startMs)
    await passing(Math.max(...expectedMs) + 1)
    await Promise.all(answers)
    assert.deepEqual(answeredMs, expectedMs)
  })

  test(`${name}: a take does not overtake those who wait`, async () => {
    const { limiter, clock, settled } = await fixture(threeAtOnce)
    await limiter.take('k', 2)
    let answered = 0
    const answers = Array.from({ length: 4 }, () => limiter.wait('k', { cost: 3 }).then(() => answered++))
    await arrived(settled)
    for (let ms = 0; answered < 4 && ms < 3000; ms += 5) {
      assert.equal((await limiter.take('k')).allowed, false, `${ms} ms`)
      clock.advance(5)
      await settled()
    }
    await Promise.all(answers)
  })

  test(`${name}: neither a take nor a reservation overtakes those who wait for the end of a block`, async () => {
    const { limiter, clock, settled } = await fixture(threeAtOnce)
    const bound = limiter.key('k')
    const asked: Awaitable<{ readonly allowed: boolean }>[] = []
    await limiter.block('k', 100)
    // Before the timer of those who wait, in the moment in which the block ends.
    clock.after(100, () => void asked.push(limiter.take('k'), bound.take(), limiter.reserve('k', 1), limiter.take('other')))
    const waiting = limiter.wait('k')
    await arrived(settled)
    clock.advance(100)
    assert.equal((await waiting).allowed, true)
    assert.deepEqual(
      (await Promise.all(asked)).map(({ allowed }) => allowed),
      [false, false, false, true],
    )
    assert.equal((await limiter.take('k')).allowed, true)
  })

  test(`${name}: keys wait apart`, async () => {
    const { limiter, atOnce } = await fixture(threeAtOnce)
    await limiter.take('busy', 3)
    const waiting = limiter.wait('busy')
    assert.equal((await atOnce(limiter.wait('other', { cost: 3 }))).allowed, true)
    limiter.close()
    await assert.rejects(waiting, { code: 'CLOSED' })
  })

  test(`${name}: an impossible cost is denied at once`, async () => {
    const { limiter, atOnce } = await fixture(threeAtOnce)
    await limiter.take('k', 3)
    const { allowed, retryAfterMs } = await atOnce(limiter.wait('k', { cost: 4 }))
    assert.deepEqual([allowed, retryAfterMs], [false, Number.POSITIVE_INFINITY])
  })

  test(`${name}: what would take longer than maxWait is denied at once, what takes as long is waited for`, async () => {
    const { limiter, passing, atOnce } = await fixture(threeAtOnce)
    await limiter.take('k', 3)
    const { retryAfterMs } = await limiter.peek('k', 3)
    const before = await limiter.peek('k')
    // A permit may be released any time.
    if (threeAtOnce.algorithm !== 'concurrency') {
      assert.equal((await atOnce(limiter.wait('k', { cost: 3, maxWait: retryAfterMs - 1 }))).allowed, false)
      assert.deepEqual(await limiter.peek('k'), before)
    }
    assert.equal((await atOnce(limiter.wait('k', { maxWait: 0 }))).allowed, false)
    const waiting = limiter.wait('k', { cost: 3, maxWait: retryAfterMs })
    await passing(retryAfterMs)
    assert.equal((await waiting).allowed, true)
  })

  test(`${name}: an aborted wait rejects with the signal's reason, and what it held goes back`, async () => {
    const { limiter, clock } = await fixture(threeAtOnce)
    await limiter.take('k', 3)
    const before = await limiter.peek('k')
    const controller = new AbortController()
    const waits = [1, 2, 3].map((cost) => limiter.wait('k', { cost, signal: controller.signal }))
    controller.abort(new Error('no more'))
    await Promise.all(waits.map((wait) => assert.rejects(wait, { message: 'no more' })))
    const { allowed } = await limiter.peek('k')
    assert.equal(allowed, before.allowed)
    await assert.rejects(limiter.wait('k', { signal: AbortSignal.abort(new Error('never')) }), { message: 'never' })
    clock.advance(1000)
    assert.equal((await limiter.take('k', 3)).allowed, true)
  })

  test(`${name}: of those who wait one may give up, and the others go on`, async () => {
    const { limiter, clock, passing } = await fixture(threeAtOnce)
    await limiter.take('k', 3)
    const controller = new AbortController()
    const [first, second, third] = [undefined, controller.signal, undefined].map((signal) =>
      limiter.wait('k', { cost: 3, ...(signal && { signal }) }),
    )
    clock.advance(1)
    controller.abort(new Error('mine'))
    await assert.rejects(second as Promise<Decision>, { message: 'mine' })
    await passing(1000)
    assert.deepEqual([(await first)?.allowed, (await third)?.allowed], [true, true])
  })

  test(`${name}: close rejects all waiting calls, and later ones`, async () => {
    const { limiter, clock } = await fixture(threeAtOnce)
    await limiter.take('k', 3)
    const waits = Array.from({ length: 5 }, () => limiter.wait('k'))
    limiter.close()
    await Promise.all([...waits, limiter.wait('k')].map((wait) => assert.rejects(wait, { name: 'StoreError', code: 'CLOSED' })))
    clock.advance(1000)
  })

  test(`${name}: misuse of wait is an error that says so`, async () => {
    const { limiter } = await fixture(threeAtOnce)
    const wrong: readonly (readonly [string, object])[] = [
      ['COST_INVALID', { cost: 0 }],
      ['DURATION_INVALID', { maxWait: -1 }],
      ['OPTION_INVALID', { signal: 1 }],
      ['OPTION_UNKNOWN', { timeout: 1 }],
    ]
    for (const [code, options] of wrong) await assert.rejects(async () => limiter.wait('k', options), { name: 'PolicyError', code })
    for (const key of ['', 10n, [10n]]) {
      await assert.rejects(async () => limiter.wait(key as string), { name: 'PolicyError', code: 'KEY_INVALID', option: 'key' })
    }
    assert.equal((await limiter.peek('k')).remaining, 3)
  })

  test(`${name}: beyond maxWaiting a wait is denied at once`, async () => {
    const { limiter, passing, atOnce } = await fixture(threeAtOnce, { maxWaiting: 2 })
    await limiter.take('k', 3)
    const waits = [limiter.wait('k'), limiter.wait('k')]
    assert.equal((await atOnce(limiter.wait('k'))).allowed, false)
    assert.equal((await atOnce(limiter.wait('other'))).allowed, true)
    await passing(1000)
    assert.deepEqual(
      (await Promise.all(waits)).map(({ allowed }) => allowed),
      [true, true],
    )
    assert.equal((await atOnce(limiter.wait('k'))).allowed, true)
  })

  test(`${name}: hundreds of waiting calls share one timer, and none is left when the last has ended`, async () => {
    const { limiter, timers, passing } = await fixture(policyOf({ limit: 1000, window: '10ms' }), { maxKeys: 20 })
    for (let i = 0; i < 10; i++) await limiter.take(`key ${i}`, 1000)
    const calls = fixture.store.source === 'memory' ? shortOrLong(1000, 1500) : 200
    const waits = Array.from({ length: calls }, (_, i) => limiter.wait(`key ${i % 10}`))
    assert.ok(timers.set >= 1 && timers.most <= 3, `${timers.most} timers at once`)
    await passing(100)
    assert.equal((await Promise.all(waits)).filter(({ allowed }) => allowed).length, calls)
    assert.ok(timers.most <= 3, `${timers.most} timers at once`)
    // One may stand beside a call that a busy store still answers.
    await until('no timer is left', () => timers.set === 0)
  })
}

/** When each is let through who comes at once, one after another: as reserved, or else by asking each millisecond. */
function turnsMs(spec: PolicySpec, costs: readonly number[], startMs: number): number[] {
  const oracle = oracleFor(spec)
  if (spec.algorithm !== 'concurrency' && spec.algorithm !== 'all-of') return costs.map((cost) => oracle.reserve('k', cost, startMs).waitMs)
  let ms = 0
  return costs.map((cost) => {
    while (!oracle.take('k', cost, startMs + ms).allowed) ms++
    return ms
  })
}
