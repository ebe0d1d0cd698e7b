import type { Policy } from '../../../sluicegate/dist/policy/policy.js'
import type { Answer } from '../answer.js'
import { carriedOracleFor } from '../oracle/carried-oracle.js'
import type { AlgorithmName } from '../oracle/policy-spec.js'
import { type Mismatch, mismatchIn, oracleAnswers } from '../replay.js'
import type { Sequence, Step } from '../sequences/sequence.js'
import { sequenceOf } from '../sequences/sequence-of.js'
import { FleetReplay, namedPolicy, type TimedLimiter } from '../twins/fleet-replay.js'

/** An exact limiter over a store at given times, whose keys begin with `prefix`. */
export type LimiterOnStore = (policy: Policy, prefix: string) => TimedLimiter

/**
 * Plays the sequence of a seed on a store that keeps with each key the policy by which it was written: once under its first policy, and once
 * with its changes of policy. The first answer that is not the oracle's.
 */
export async function mismatchOnStore(seed: number, algorithm: AlgorithmName, make: LimiterOnStore): Promise<Mismatch | undefined> {
  const { policy, steps } = sequenceOf(seed, algorithm)
  const forward = forwards(steps)
  const steady = { policy, steps: forward.filter(({ verb }) => verb !== 'update') }
  const mismatch = await played(steady, make(namedPolicy(policy), `${algorithm} ${seed}`))
  if (mismatch !== undefined || steady.steps.length === forward.length) return mismatch
  return played({ policy, steps: settledBefore(forward, algorithm) }, make(namedPolicy(policy), `${algorithm} ${seed} changed`))
}

async function played(sequence: Sequence, limiter: TimedLimiter): Promise<Mismatch | undefined> {
  const replay = new FleetReplay(limiter)
  const answers: (Answer | undefined)[] = []
  try {
    for (const step of sequence.steps) answers.push(await replay.answer(step))
  } finally {
    replay.close()
  }
  return mismatchIn(sequence, oracleAnswers(sequence, carriedOracleFor), answers)
}

/** A store keeps nothing of a key that has been full for a while, so it does not know that its clock ran back since. */
function forwards(steps: readonly Step[]): readonly Step[] {
  let latestMs = Number.NEGATIVE_INFINITY
  return steps.map((step) => {
    latestMs = Math.max(latestMs, step.atMs)
    return { ...step, atMs: latestMs }
  })
}

/** What was charged before the numbers changed may have been forgiven: only permits come back. */
function settledBefore(steps: readonly Step[], algorithm: AlgorithmName): readonly Step[] {
  if (algorithm === 'concurrency') return steps
  let isChanged = false
  return steps.filter(({ verb }) => {
    isChanged ||= verb === 'update'
    return !isChanged || (verb !== 'settle' && verb !== 'cancel')
  })
}
