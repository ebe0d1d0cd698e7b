import type { Policy } from '../../../sluicegate/dist/policy/policy.js'
import { AllOfOracle } from '../oracle/all-of-oracle.js'
import type { AlgorithmName, Oracle, OracleBooking, OracleDecision, OracleKey, PolicySpec, SinglePolicySpec } from '../oracle/oracle.js'
import { oracleFor } from '../oracle/versioned-oracle.js'
import type { Answer } from '../replay.js'
import { type Mismatch, mismatchIn, oracleAnswers } from '../replay.js'
import type { Sequence, Step } from '../sequences/draws.js'
import { sequenceOf } from '../sequences/sequence-of.js'
import { FleetReplay, namedPolicy, type TimedLimiter } from '../twins/fleet-replay.js'

interface Carried {
  oracle: Oracle
  /** Under which it was written last, and when it was changed. */
  spec: SinglePolicySpec
  writtenMs: number
}

/**
 * What a store must answer that keeps with each key the policy by which it was written: see {@link CarriedOracle}.
 *
 * @param keepsAll of rates nothing is forgiven.
 */
export function carriedOracleFor(spec: PolicySpec, keepsAll: boolean): Oracle {
  if (spec.algorithm === 'all-of') return new AllOfOracle(spec.parts.map((part) => carriedOracleFor(part, keepsAll)))
  // Permits keep their time whatever the numbers.
  return spec.algorithm === 'concurrency' ? oracleFor(spec) : new CarriedOracle(spec, keepsAll)
}

/**
 * A key is carried over to other numbers when it is next touched, at that time; of a rate or a fixed window that still counts when it is next changed, as of its
 * last change. The faster of both paces pays what a rate owes.
 */
class CarriedOracle implements Oracle {
  #spec: SinglePolicySpec
  readonly #keepsAll: boolean
  readonly #keys = new Map<string, Carried>()

  constructor(spec: SinglePolicySpec, keepsAll: boolean) {
    this.#spec = spec
    this.#keepsAll = keepsAll
  }

  take(key: OracleKey, cost: number, nowMs: number): OracleDecision {
    return this.#touched(key, nowMs, (oracle) => oracle.take(key, cost, nowMs))
  }

  peek(key: OracleKey, cost: number, nowMs: number): OracleDecision {
    return this.#touched(key, nowMs, (oracle) => oracle.peek(key, cost, nowMs))
  }

  refund(key: OracleKey, tokens: number, nowMs: number): OracleDecision {
    return this.#touched(key, nowMs, (oracle) => oracle.refund(key, tokens, nowMs))
  }

  penalize(key: OracleKey, tokens: number, nowMs: number): OracleDecision {
    return this.#touched(key, nowMs, (oracle) => oracle.penalize(key, tokens, nowMs))
  }

  block(key: OracleKey, durationMs: number, nowMs: number): OracleDecision {
    return this.#touched(key, nowMs, (oracle) => oracle.block(key, durationMs, nowMs))
  }

  reset(key: OracleKey, nowMs: number): OracleDecision {
    return this.#touched(key, nowMs, (oracle) => oracle.reset(key, nowMs))
  }

  reserve(key: OracleKey, cost: number, nowMs: number): OracleBooking {
    return this.#touched(key, nowMs, (oracle) => oracle.reserve(key, cost, nowMs))
  }

  cancel(booking: OracleBooking, tokens: number, nowMs: number): OracleDecision {
    return this.#touched(booking.key, nowMs, (oracle) => oracle.cancel(booking, tokens, nowMs))
  }

  update(spec: PolicySpec): void {
    this.#spec = spec as SinglePolicySpec
  }

  copy(): Oracle {
    throw new TypeError('not copied')
  }

  stateTextOf(key: OracleKey): string {
    return this.#keys.get(String(key))?.oracle.stateTextOf(key) ?? ''
  }

  forget(key: OracleKey): void {
    this.#keys.get(String(key))?.oracle.forget(key)
  }

  #touched<Answer>(key: OracleKey, nowMs: number, ask: (oracle: Oracle) => Answer): Answer {
    const spec = this.#spec
    const carried = this.#keys.get(String(key)) ?? { oracle: oracleFor(spec), spec, writtenMs: nowMs }
    this.#keys.set(String(key), carried)
    const isOther = carried.spec !== spec
    const mayWait = isOther && (spec.algorithm === 'fixed-window' || 'burst' in spec)
    const oracle = mayWait ? this.#waiting(carried, key, nowMs) : carried.oracle
    if (isOther && !mayWait) oracle.update(spec.algorithm === 'sliding-window' ? { ...spec, isSaved: true } : spec, nowMs)
    const before = oracle.stateTextOf(key)
    const answer = ask(oracle)
    const isChanged = oracle.stateTextOf(key) !== before
    if (isChanged) carried.writtenMs = nowMs
    if (isChanged || !mayWait) Object.assign(carried, { oracle, spec })
    return answer
  }

  #waiting({ oracle, writtenMs }: Carried, key: OracleKey, nowMs: number): Oracle {
    const spec = this.#spec
    const keepsAll = this.#keepsAll && 'burst' in spec
    const updated = (to: PolicySpec, ms: number): Oracle => {
      const copy = oracle.copy()
      copy.update(to, ms)
      return copy
    }
    const now = updated(spec, nowMs)
    const then = updated(keepsAll ? { ...spec, keepsAll } : spec, writtenMs)
    if ('burst' in spec) return debtOf(then, key) < debtOf(now, key) ? then : now
    return isOver(now, spec, key, nowMs) ? now : then
  }
}

/** Whether nothing is left of what a key has spent, a ban aside. */
function isOver(oracle: Oracle, spec: SinglePolicySpec, key: OracleKey, nowMs: number): boolean {
  const open = oracle.copy()
  open.block(key, 0, nowMs)
  return open.peek(key, 1, nowMs).remaining === spec.limit
}

/** When a rate is paid, in units: of one policy the earlier time is the smaller debt. */
function debtOf(oracle: Oracle, key: OracleKey): bigint {
  return BigInt((JSON.parse(oracle.stateTextOf(key)) as { readonly state?: string }).state ?? 0)
}

/** Of others with these all are swapped. */
function isStepped(spec: SinglePolicySpec): boolean {
  return 'burst' in spec || (spec.algorithm === 'fixed-window' && !('calendar' in spec && spec.calendar !== undefined))
}

/** An exact limiter over a store at given times, whose keys begin with `prefix`. */
export type LimiterOnStore = (policy: Policy, prefix: string) => TimedLimiter

/**
 * Plays the sequence of a seed on a store that keeps with each key the policy by which it was written: once under its first policy, and once
 * with its changes of policy. The first answer that is not the oracle's.
 *
 * @param keepsAll of rates nothing is forgiven.
 */
export async function mismatchOnStore(
  seed: number,
  algorithm: AlgorithmName,
  make: LimiterOnStore,
  keepsAll = false,
): Promise<Mismatch | undefined> {
  const { policy, steps } = sequenceOf(seed, algorithm)
  const forward = forwards(steps)
  const steady = { policy, steps: forward.filter(({ verb }) => verb !== 'update') }
  const isKept = keepsAll && (policy.algorithm !== 'all-of' || policy.parts.every(isStepped))
  const oracle = (spec: PolicySpec): Oracle => carriedOracleFor(spec, isKept)
  const mismatch = await played(steady, make(namedPolicy(policy), `${algorithm} ${seed}`), oracle)
  if (mismatch !== undefined || steady.steps.length === forward.length) return mismatch
  return played({ policy, steps: settledBefore(forward, algorithm) }, make(namedPolicy(policy), `${algorithm} ${seed} changed`), oracle)
}

async function played(sequence: Sequence, limiter: TimedLimiter, oracle: (spec: PolicySpec) => Oracle): Promise<Mismatch | undefined> {
  const replay = new FleetReplay(limiter)
  const answers: (Answer | undefined)[] = []
  try {
    for (const step of sequence.steps) answers.push(await replay.answer(step))
  } finally {
    replay.close()
  }
  return mismatchIn(sequence, oracleAnswers(sequence, oracle), answers)
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
