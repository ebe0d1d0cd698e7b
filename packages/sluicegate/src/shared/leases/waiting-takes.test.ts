import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Decision } from '../../decision/decision.js'
import { fixedWindow, manualClock, type Policy, tokenBucket } from '../../index.js'
import type { Answer } from '../backend.js'
import { LateAnswers } from './late-answers.js'
import { WaitingTakes } from './waiting-takes.js'

const POLICY = tokenBucket({ limit: 500, window: '1s', burst: 1000, name: 'p' })
const LEASE_US = 100_000
const TIMEOUT_MS = 200
const TAKEN: Decision = { allowed: true, limit: 1000, remaining: 9, retryAfterMs: 0, resetAfterMs: 1, policy: 'p', source: 'store' }

/** Takes whose refills bring nothing that they can spend. */
class VainTakes extends WaitingTakes {
  refills = 0
  refill = (): void => undefined

  protected decide(): undefined {}

  protected awaitRefill(): 'in time' {
    this.refills++
    this.refill()
    return 'in time'
  }

  protected alone(key: string, cost: number): Promise<Decision> {
    return this.exact(key, cost)
  }

  override exact(key: string, cost: number): Promise<Decision> {
    return super.exact(key, cost, undefined)
  }

  override decideLater(key: string, cost: number): Promise<Decision> {
    return super.decideLater(key, cost, undefined)
  }
}

/** A store that takes so long for each call. */
function slowStore(decision: Decision = TAKEN, policy: Policy = POLICY) {
  const clock = manualClock()
  const warnings: string[] = []
  const late = new LateAnswers('raise it', (message) => warnings.push(message))
  const take = { tookMs: 0, calls: 0 }
  const execute = async (): Promise<Answer> => {
    take.calls++
    clock.advance(take.tookMs)
    return { done: decision.allowed, decision }
  }
  const without = (): Decision => ({ ...decision, allowed: false, source: 'outage' })
  const guard = { isTogether: () => true, pausedMs: () => 0, timeoutMs: TIMEOUT_MS }
  const miss = new VainTakes({ policy, inForce: { fallback: { execute, without } }, guard, late, clock, leaseUs: LEASE_US })
  return { miss, clock, late, warnings, take }
}

test('late answers between answers in time are counted, without a warning of a slow store', async () => {
  const { miss, clock, late, warnings, take } = slowStore()
  for (let hour = 0; hour < 5; hour++) {
    take.tookMs = 150
    await miss.exact('k', 1)
    take.tookMs = 1
    for (let i = 0; i < 100; i++) assert.equal((await miss.exact('k', 1)).source, 'store')
    clock.advance(3_600_000)
  }
  assert.deepEqual([late.count, warnings], [10, []])
})

test('of a store that is always late the process is warned, also where it denies', async () => {
  for (const decision of [TAKEN, { ...TAKEN, allowed: false, retryAfterMs: 7 }]) {
    const { miss, warnings, take } = slowStore(decision)
    take.tookMs = 150
    for (let i = 0; i < 10; i++) await miss.exact('k', 1)
    assert.ok(warnings.length > 0)
  }
})

test('what was decided without the store says nothing of it', async () => {
  const { miss, late, take } = slowStore({ ...TAKEN, source: 'outage' })
  take.tookMs = 150
  assert.equal((await miss.exact('k', 1)).source, 'outage')
  assert.deepEqual([late.count, take.calls], [0, 1])
})

test('a take whose refills are spent by others waits for no further call once the timeout is over', async () => {
  const { miss, clock } = slowStore()
  miss.refill = () => clock.advance(90)
  const decision = await miss.decideLater('k', 1)
  assert.deepEqual([decision.source, miss.refills, clock.nowMs()], ['outage', 3, 270])
})

test('a fast store is asked by itself when refills do not suffice', async () => {
  const { miss } = slowStore()
  const decision = await miss.decideLater('k', 1)
  assert.deepEqual([decision.source, miss.refills], ['store', 8])
})

test('an exact take of windows that end before each answer is decided within two timeouts', async () => {
  const { miss, clock, take } = slowStore({ ...TAKEN, resetAfterMs: 50 }, fixedWindow({ limit: 10, window: '50ms' }))
  take.tookMs = 60
  const decision = await miss.exact('k', 1)
  assert.equal(decision.source, 'outage')
  assert.ok(clock.nowMs() <= 2 * TIMEOUT_MS, `${clock.nowMs()} ms`)
})
