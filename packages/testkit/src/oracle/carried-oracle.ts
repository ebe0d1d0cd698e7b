import { AllOfOracle } from './all-of-oracle.js'
import type { Oracle, OracleBooking, OracleDecision, OracleKey } from './oracle.js'
import { oracleFor } from './oracle-for.js'
import type { PolicySpec, SinglePolicySpec } from './policy-spec.js'

interface Carried {
  readonly oracle: Oracle
  /** Under which it was touched last. */
  spec: SinglePolicySpec
}

/** What a store must answer that keeps with each key the policy by which it was written: see {@link CarriedOracle}. */
export function carriedOracleFor(spec: PolicySpec): Oracle {
  if (spec.algorithm === 'all-of') return new AllOfOracle(spec.parts.map(carriedOracleFor))
  // Permits keep their time whatever the numbers.
  return spec.algorithm === 'concurrency' ? oracleFor(spec) : new CarriedOracle(spec)
}

/** A key is carried over to other numbers when it is next touched, at that time. */
class CarriedOracle implements Oracle {
  #spec: SinglePolicySpec
  readonly #keys = new Map<string, Carried>()

  constructor(spec: SinglePolicySpec) {
    this.#spec = spec
  }

  take(key: OracleKey, cost: number, nowMs: number): OracleDecision {
    return this.#touched(key, nowMs).take(key, cost, nowMs)
  }

  peek(key: OracleKey, cost: number, nowMs: number): OracleDecision {
    return this.#touched(key, nowMs).peek(key, cost, nowMs)
  }

  refund(key: OracleKey, tokens: number, nowMs: number): OracleDecision {
    return this.#touched(key, nowMs).refund(key, tokens, nowMs)
  }

  penalize(key: OracleKey, tokens: number, nowMs: number): OracleDecision {
    return this.#touched(key, nowMs).penalize(key, tokens, nowMs)
  }

  block(key: OracleKey, durationMs: number, nowMs: number): OracleDecision {
    return this.#touched(key, nowMs).block(key, durationMs, nowMs)
  }

  reset(key: OracleKey, nowMs: number): OracleDecision {
    return this.#touched(key, nowMs).reset(key, nowMs)
  }

  reserve(key: OracleKey, cost: number, nowMs: number): OracleBooking {
    return this.#touched(key, nowMs).reserve(key, cost, nowMs)
  }

  cancel(booking: OracleBooking, tokens: number, nowMs: number): OracleDecision {
    return this.#touched(booking.key, nowMs).cancel(booking, tokens, nowMs)
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

  #touched(key: OracleKey, nowMs: number): Oracle {
    const spec = this.#spec
    const carried = this.#keys.get(String(key)) ?? { oracle: oracleFor(spec), spec }
    this.#keys.set(String(key), carried)
    if (carried.spec !== spec) carried.oracle.update(spec, nowMs)
    carried.spec = spec
    return carried.oracle
  }
}
