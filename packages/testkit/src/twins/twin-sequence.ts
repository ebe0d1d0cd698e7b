import type { AlgorithmName, PolicySpec, SinglePolicySpec } from '../oracle/policy-spec.js'
import { Random } from '../random.js'
import { nextPolicy } from '../sequences/random-policy.js'
import type { Sequence, Step } from '../sequences/sequence.js'
import { sequenceOf } from '../sequences/sequence-of.js'

/** What is declared to be different between a store and the limiter in memory, taken out of a sequence. */
export interface TwinOptions {
  /** Whether to keep the changes of policy; `turns` has two policies that change places again and again. Default neither. */
  readonly updates?: boolean | 'turns'
}

/** The sequence of a seed for a store: times run forward, counts and times are not packed into words. */
export function twinSequence(seed: number, algorithm: AlgorithmName, { updates = false }: TwinOptions = {}): Sequence {
  const { policy, steps } = sequenceOf(seed, algorithm)
  let lastMs = 0
  const forward = steps.map((step): Step => {
    lastMs = Math.max(lastMs, step.atMs)
    return step.verb === 'update' ? { ...step, atMs: lastMs, policy: unpacked(step.policy) } : { ...step, atMs: lastMs }
  })
  const first = unpacked(policy)
  const steady = forward.filter(({ verb }) => verb !== 'update')
  if (updates === 'turns') return { policy: withoutCalendar(first), steps: takingTurns(seed, first, steady) }
  return { policy: first, steps: updates ? withUpdates(first, forward) : steady }
}

/** Counters without the cap of 16 bits, slots that hold any time. */
function unpacked(spec: PolicySpec): PolicySpec {
  return spec.algorithm === 'all-of' ? { ...spec, parts: spec.parts.map(unpackedSingle) } : unpackedSingle(spec)
}

function unpackedSingle(spec: SinglePolicySpec): SinglePolicySpec {
  if (spec.algorithm === 'sliding-window') return { ...spec, counters: 'compact' }
  return spec.algorithm === 'sliding-log' ? { ...spec, slotBytes: 8, tickUs: 1 } : spec
}

/**
 * What was booked before a change is settled under the policy of before, which is its own thing; and a log counts whatever it still
 * holds, so that it changes once.
 */
export function withUpdates(policy: PolicySpec, steps: readonly Step[]): readonly Step[] {
  const hasLog = [policy, ...(policy.algorithm === 'all-of' ? policy.parts : [])].some(({ algorithm }) => algorithm === 'sliding-log')
  let updates = 0
  return steps.filter(({ verb }) => {
    if (verb === 'update') return ++updates === 1 || !hasLog
    return updates === 0 || !['settle', 'cancel', 'heartbeat', 'release'].includes(verb)
  })
}

/** As if two processes asked, one with another version of the policy; of a calendar that only one has, the other knows no windows. */
function takingTurns(seed: number, policy: PolicySpec, steps: readonly Step[]): readonly Step[] {
  const random = new Random(seed)
  const first = withoutCalendar(policy)
  const second = withLogsOf(first, unpacked(nextPolicy(random, first, false)))
  let isSecond = false
  return steps
    .filter(({ verb }) => !['settle', 'cancel', 'heartbeat', 'release'].includes(verb))
    .flatMap((step): Step[] => {
      if (random.chance(0.6)) return [step]
      isSecond = !isSecond
      const { atMs, key, end } = step
      return [{ atMs, key, end, verb: 'update', policy: isSecond ? second : first }, step]
    })
}

function withoutCalendar(spec: PolicySpec): PolicySpec {
  if (spec.algorithm === 'all-of') return { ...spec, parts: spec.parts.map((part) => withoutCalendar(part) as SinglePolicySpec) }
  const { algorithm, limit, windowMs } = spec
  return algorithm === 'fixed-window' ? { algorithm, limit, windowMs } : spec
}

/** A log counts whatever it still holds, under whatever numbers. */
function withLogsOf(first: PolicySpec, second: PolicySpec): PolicySpec {
  if (first.algorithm !== 'all-of' || second.algorithm !== 'all-of') return second
  const { parts } = second
  return { ...second, parts: first.parts.map((part, i) => (part.algorithm === 'sliding-log' ? part : (parts[i] ?? part))) }
}
