import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Decision } from '../../decision/decision.js'
import { manualClock } from '../../index.js'
import type { Answer } from '../backend.js'
import { WaitingTakes } from './waiting-takes.js'

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
    return this.exact(key, cost, undefined)
  }

  override decideLater(key: string, cost: number): Promise<Decision> {
    return super.decideLater(key, cost, undefined)
  }
}

function vainTakes() {
  const clock = manualClock()
  const execute = async (): Promise<Answer> => ({ done: true, decision: TAKEN })
  const without = (): Decision => ({ ...TAKEN, allowed: false, source: 'outage' })
  const guard = { isTogether: () => true, pausedMs: () => 0, timeoutMs: TIMEOUT_MS }
  return { takes: new VainTakes({ inForce: { fallback: { execute, without } }, guard, clock }), clock }
}

test('a take whose refills are spent by others waits for no further call once the timeout is over', async () => {
  const { takes, clock } = vainTakes()
  takes.refill = () => clock.advance(90)
  const decision = await takes.decideLater('k', 1)
  assert.deepEqual([decision.source, takes.refills, clock.nowMs()], ['outage', 3, 270])
})

test('a fast store is asked by itself when refills do not suffice', async () => {
  const { takes } = vainTakes()
  const decision = await takes.decideLater('k', 1)
  assert.deepEqual([decision.source, takes.refills], ['store', 8])
})
