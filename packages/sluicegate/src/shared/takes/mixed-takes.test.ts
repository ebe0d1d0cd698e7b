import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Admission, firstOver, Random, shortOrLong, specOf } from 'sluicegate-testkit'
import { ManualAuthority } from 'sluicegate-testkit/leases/manual-authority.js'
import type { Decision } from '../../decision/decision.js'
import { fixedWindow, gcra, manualClock, type Policy, slidingLog, slidingWindow, tokenBucket } from '../../index.js'
import type { Answer } from '../backend.js'
import { WaitingTakes } from './waiting-takes.js'

// The demand of each process changes all the time, so that it leases a key, takes one by one from it, gives back, and pauses.

const POLICIES: readonly Policy[] = [
  tokenBucket({ limit: 300, window: '1s', burst: 60 }),
  gcra({ limit: 50, window: '1s', burst: 12 }),
  fixedWindow({ limit: 150, window: '2s' }),
  slidingWindow({ limit: 150, window: '2s' }),
  slidingLog({ limit: 150, window: '2s' }),
]
const SEEDS = shortOrLong(10, 30)
const STEPS = 500

test('I1: whatever mix of leases and single takes their demand makes of it, processes never go over the policy', async () => {
  let [leases, atOnce, returns] = [0, 0, 0]
  for (let seed = 1; seed <= SEEDS; seed++) {
    const policy = POLICIES[seed % POLICIES.length] as Policy
    const { authority, admissions } = await played(policy, seed)
    assert.equal(firstOver(specOf(policy), admissions), undefined, `seed ${seed}`)
    leases += authority.leases
    atOnce += authority.atOnce
    returns += authority.returns
  }
  assert.ok(leases > 10 * SEEDS && atOnce > 5 * SEEDS && returns >= SEEDS / 20, `${leases} leases, ${atOnce} takes, ${returns} returns`)
})

async function played(policy: Policy, seed: number) {
  const random = new Random(seed)
  const authority = new ManualAuthority({ policy, seed, processes: random.integer(1, 5), delayMs: random.pick([0, 0.2, 3, 20]) })
  const admissions: Admission[] = []
  const cost = random.pick([1, 1, 1, 3])
  const perStep = authority.fleet.map(() => 0)
  const pending: Promise<void>[] = []
  for (let step = 0; step < STEPS; step++) {
    for (const [i, takes] of authority.fleet.entries()) {
      if (random.chance(0.02)) perStep[i] = random.pick([0, 0.02, 0.3, 2, 6])
      let count = Math.floor((perStep[i] as number) + random.fraction())
      for (; count > 0; count--) pending.push(counted(authority, takes.take('k', cost), cost, admissions))
    }
    await new Promise((resolve) => setImmediate(resolve))
    authority.clock.advance(random.pick([0.1, 1, 1, 4]))
  }
  for (const takes of authority.fleet) takes.close()
  for (let ms = 0; ms < 200; ms++) {
    authority.clock.advance(1)
    await new Promise((resolve) => setImmediate(resolve))
  }
  await Promise.all(pending)
  admissions.sort((a, b) => a.atUs - b.atUs)
  return { authority, admissions }
}

async function counted(
  authority: ManualAuthority,
  take: ReturnType<ManualAuthority['takes']['take']>,
  cost: number,
  admissions: Admission[],
): Promise<void> {
  const decision = await take
  if (decision.allowed) admissions.push({ atUs: authority.timeOf(decision), cost })
}

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
  const takeWithout = (): Decision => ({ ...TAKEN, allowed: false, source: 'outage' })
  const guard = { isTogether: () => true, pausedMs: () => 0, timeoutMs: TIMEOUT_MS }
  return { takes: new VainTakes({ inForce: { fallback: { execute, takeWithout } }, guard, clock }), clock }
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
