import { createLimiter } from '../../../sluicegate/dist/create-limiter.js'
import type { Policy } from '../../../sluicegate/dist/policy/policy.js'
import { manualClock } from '../../../sluicegate/dist/time/clock.js'
import { policyOf } from '../kit.js'
import type { PolicySpec, SinglePolicySpec } from '../oracle/policy-spec.js'
import { Random } from '../random.js'
import type { Account } from './net-history.js'
import { playSettled, type SettledPlan, type SettledResult, type SettledSubject } from './settled-history.js'
import { type ReceiptFault, settlingLimiter } from './settling-limiter.js'

export const SETTLED_ALGORITHMS = ['token-bucket', 'gcra', 'fixed-window', 'sliding-window', 'sliding-log'] as const
export type SettledAlgorithm = (typeof SETTLED_ALGORITHMS)[number]

/** Saved: seeds whose histories once found something. They are played in every run. */
export const SAVED_SEEDS: Readonly<Partial<Record<SettledAlgorithm, readonly number[]>>> = {}

/** Steps of a history, without those of its end. */
export const STEPS = { least: 6, most: 30 }
const START_MS = 1_790_000_000_000

/** The policies of the history of a seed: small limits, in windows of many lengths. */
export function settledPlan(random: Random, algorithm: SettledAlgorithm): SettledPlan {
  const windowMs = random.pick([1, 20, 100, 1000, 60_000])
  const specOf = (): SinglePolicySpec => {
    const limit = random.integer(1, 20)
    if (algorithm === 'token-bucket' || algorithm === 'gcra') return { algorithm, limit, windowMs, burst: random.integer(2, 20) }
    return { algorithm, limit, windowMs }
  }
  const specs = { own: specOf(), other: specOf() }
  const updates = random.chance(0.5) ? [specs.own, specOf(), specOf()] : []
  return { specs, updates, mostCost: random.integer(1, 8), whileMs: windowMs, startMs: START_MS + random.integer(0, 100_000), waits: true }
}

/**
 * The history of a seed in memory.
 *
 * @param waits whether jobs wait for their tokens. Their charge counts from the time for which it is booked. A clock that is set by hand jumps past that
 * time, and the history counts it at the end of the jump: in rare histories a later take then seems to be too much.
 */
export async function settledInMemory(
  seed: number,
  algorithm: SettledAlgorithm,
  fault?: ReceiptFault,
  waits = true,
): Promise<SettledResult> {
  const random = new Random(seed)
  const plan = { ...settledPlan(random, algorithm), waits }
  const clock = manualClock(plan.startMs)
  let account: Account = 'own'
  const other = namedSpec(plan.specs.other, 'other')
  const limiter = createLimiter(namedSpec(plan.specs.own, 'own'), {
    clock,
    maxKeys: 8,
    policyFor: () => (account === 'other' ? other : undefined),
    policies: [other],
  })
  const subject: SettledSubject = {
    limiter: settlingLimiter(() => limiter, fault),
    clock,
    set: (ms) => clock.set(ms),
    choose: (next) => {
      account = next
    },
    update: (spec) => limiter.update(namedSpec(spec, 'own')),
    flush: turns,
  }
  try {
    return await playSettled(random, subject, plan, random.integer(STEPS.least, STEPS.most))
  } finally {
    limiter.close()
  }
}

/** What follows from something that was answered has run. */
async function turns(): Promise<void> {
  for (let turn = 0; turn < 6; turn++) await undefined
}

/** A policy of a name, whatever its numbers. */
export function namedSpec(spec: PolicySpec, name: string): Policy {
  return policyOf(spec as SinglePolicySpec, { name })
}
