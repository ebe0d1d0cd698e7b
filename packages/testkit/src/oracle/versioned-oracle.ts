import { AllOfOracle } from './all-of-oracle.js'
import { ConcurrencyOracle } from './concurrency-oracle.js'
import { KeyedOracle } from './keyed-oracle.js'
import type { Oracle, OracleBooking, OracleDecision, OracleKey, PolicySpec, SinglePolicySpec } from './oracle.js'
import { exactEmission, max, toUs } from './oracle.js'
import { RateOracle } from './rate-oracle.js'
import { SlidingLogOracle } from './sliding-log-oracle.js'
import { FixedWindowOracle, SlidingWindowOracle } from './window-oracles.js'

/** What a key has spent under the numbers of one policy. */
interface Version {
  readonly numbers: string
  readonly oracle: Oracle
  /** The most tokens that pass at once. */
  readonly whole: number
  /** Until when it is kept beside others; undefined of the one written last. */
  untilMs: number | undefined
}

type Verb = 'take' | 'refund' | 'penalize' | 'reserve' | 'cancel' | 'peek'

/** Numbers count as in use for so long after they were last seen, or as long as what was spent under them counts. */
const IN_USE_MS = 3_600_000
const MOST_VERSIONS = 4
/** The largest debt, and the largest penalty. */
const PENALTY_BURSTS = 11

/** What a store must answer under a policy that changes from call to call: see {@link VersionedOracle}. */
export function versionedOracleFor(spec: PolicySpec): Oracle {
  if (spec.algorithm === 'all-of') return new AllOfOracle(spec.parts.map(versionedOracleFor))
  return spec.algorithm === 'concurrency' ? oracleFor(spec) : new VersionedOracle(spec)
}

/**
 * A key is carried over to other numbers when it is next touched, and counts under all numbers that are in use: each take is charged
 * under each of them. Permits keep their time whatever the numbers. A log has one state for all numbers: it counts whatever it still holds, which
 * is what is said here until its numbers change a second time.
 */
class VersionedOracle implements Oracle {
  #spec: SinglePolicySpec
  readonly #keys = new Map<string, Version[]>()
  readonly #blockedUntilUs = new Map<string, bigint>()

  constructor(spec: SinglePolicySpec) {
    this.#spec = spec
  }

  take(key: OracleKey, cost: number, nowMs: number): OracleDecision {
    return this.#touched('take', key, cost, nowMs, (oracle) => oracle.take(key, cost, nowMs))
  }

  peek(key: OracleKey, cost: number, nowMs: number): OracleDecision {
    return this.#touched('peek', key, cost, nowMs, (oracle) => oracle.peek(key, cost, nowMs))
  }

  refund(key: OracleKey, tokens: number, nowMs: number): OracleDecision {
    return this.#touched('refund', key, tokens, nowMs, (oracle) => oracle.refund(key, tokens, nowMs))
  }

  penalize(key: OracleKey, tokens: number, nowMs: number): OracleDecision {
    return this.#touched('penalize', key, tokens, nowMs, (oracle) => oracle.penalize(key, tokens, nowMs))
  }

  reserve(key: OracleKey, cost: number, nowMs: number): OracleBooking {
    return this.#touched('reserve', key, cost, nowMs, (oracle) => oracle.reserve(key, cost, nowMs))
  }

  cancel(booking: OracleBooking, tokens: number, nowMs: number): OracleDecision {
    return this.#touched('cancel', booking.key, tokens, nowMs, (oracle) => oracle.cancel(booking, tokens, nowMs))
  }

  /** Whatever the numbers. */
  block(key: OracleKey, durationMs: number, nowMs: number): OracleDecision {
    const nowUs = toUs(nowMs)
    const untilUs = max(this.#blockedUntilUs.get(String(key)) ?? nowUs, nowUs + max(1n, toUs(durationMs)))
    this.#blockedUntilUs.set(String(key), durationMs === 0 ? nowUs : untilUs)
    return this.#touched('peek', key, 1, nowMs, (oracle) => oracle.peek(key, 1, nowMs))
  }

  reset(key: OracleKey, nowMs: number): OracleDecision {
    this.#keys.delete(String(key))
    this.#blockedUntilUs.delete(String(key))
    return this.peek(key, 1, nowMs)
  }

  update(spec: PolicySpec): void {
    this.#spec = spec as SinglePolicySpec
  }

  copy(): Oracle {
    throw new TypeError('not copied')
  }

  stateTextOf(key: OracleKey): string {
    return this.#versions(key)
      .map(({ oracle }) => oracle.stateTextOf(key))
      .join()
  }

  forget(key: OracleKey): void {
    for (const { oracle } of this.#versions(key)) oracle.forget(key)
  }

  #versions(key: OracleKey): readonly Version[] {
    return this.#keys.get(String(key)) ?? []
  }

  #touched<Answer>(verb: Verb, key: OracleKey, tokens: number, nowMs: number, ask: (oracle: Oracle) => Answer): Answer {
    const numbers = numbersOf(this.#spec)
    const all = this.#versions(key)
    // Full under all of them, a key is carried over as one that never came.
    const isOver = all.every((version) => version.numbers !== numbers && lifeMs(version.oracle, key, nowMs) === 0)
    const versions = isOver ? [] : all
    const others = versions.filter((version) => version.numbers !== numbers)
    const known = versions.find((version) => version.numbers === numbers)
    const own = known ?? { numbers, whole: wholeOf(this.#spec), oracle: this.#carried(largestOf(versions), nowMs), untilMs: undefined }
    if (known !== undefined) own.oracle.update(this.#spec, nowMs)
    const untilMs = others.map((other) => other.untilMs ?? nowMs + Math.max(IN_USE_MS, lifeMs(other.oracle, key, nowMs)))
    this.#block(own.oracle, key, nowMs)
    const before = own.oracle.stateTextOf(key)
    const answer = ask(own.oracle)
    const isChanged = own.oracle.stateTextOf(key) !== before && verb !== 'peek'
    const weight = 'burst' in this.#spec ? Math.min(tokens, PENALTY_BURSTS * this.#spec.burst + 1) : tokens
    if (isChanged) for (const { oracle } of others) countElsewhere(oracle, own.oracle, verb, key, weight, nowMs)
    if (!isChanged && (known !== undefined || all.length === 0)) return answer
    for (const [i, other] of others.entries()) other.untilMs = untilMs[i]
    own.untilMs = undefined
    const kept = [own, ...keptOf(others.filter((other) => (other.untilMs as number) > nowMs))]
    this.#keys.set(String(key), kept.every(({ oracle }) => lifeMs(oracle, key, nowMs) === 0) ? [] : kept)
    return answer
  }

  #block(oracle: Oracle, key: OracleKey, nowMs: number): void {
    const leftUs = (this.#blockedUntilUs.get(String(key)) ?? 0n) - toUs(nowMs)
    oracle.block(key, 0, nowMs)
    if (leftUs > 0n) oracle.block(key, Number(leftUs) / 1000, nowMs)
  }

  #carried(from: Version | undefined, nowMs: number): Oracle {
    if (from === undefined) return oracleFor(this.#spec)
    const oracle = from.oracle.copy()
    oracle.update(this.#spec, nowMs)
    return oracle
  }
}

function countElsewhere(oracle: Oracle, by: Oracle, verb: Verb, key: OracleKey, tokens: number, nowMs: number): void {
  if (verb === 'cancel') return
  if (verb === 'refund') oracle.refund(key, tokens, nowMs)
  else if (verb !== 'penalize' && oracle instanceof KeyedOracle && by instanceof KeyedOracle) oracle.fill(key, tokens, nowMs, by)
  else oracle.penalize(key, tokens, nowMs)
}

/** The largest limit, and of equals the one written last. */
function largestOf(versions: readonly Version[]): Version | undefined {
  return versions.reduce<Version | undefined>(
    (largest, version) => (largest && largest.whole >= version.whole ? largest : version),
    undefined,
  )
}

/** Of too many others the largest, and those written last. */
function keptOf(others: readonly Version[]): readonly Version[] {
  if (others.length < MOST_VERSIONS) return others
  const largest = largestOf(others)
  const rest = others.filter((other) => other !== largest).slice(0, MOST_VERSIONS - 2)
  return others.filter((other) => other === largest || rest.includes(other))
}

function wholeOf(spec: SinglePolicySpec): number {
  return 'burst' in spec ? spec.burst : spec.limit
}

/** Until a key is full but for its block. */
function lifeMs(oracle: Oracle, key: OracleKey, nowMs: number): number {
  const copy = oracle.copy()
  return copy.block(key, 0, nowMs).resetAfterMs
}

/** Policies with the same numbers are one to a store. */
function numbersOf(spec: SinglePolicySpec): string {
  if (!('burst' in spec))
    return JSON.stringify([
      spec.limit,
      'calendar' in spec && spec.calendar !== undefined ? spec.calendar : Math.round(spec.windowMs * 1000),
    ])
  const { q, perToken, capacity } = exactEmission(spec) ?? { q: 0n, perToken: 0n, capacity: 0n }
  return `${q} ${perToken} ${capacity}`
}

/** A fresh oracle of a policy. */
export function oracleFor(spec: PolicySpec): Oracle {
  switch (spec.algorithm) {
    case 'token-bucket':
    case 'gcra':
      return new RateOracle(spec)
    case 'fixed-window':
      return new FixedWindowOracle(spec)
    case 'sliding-window':
      return new SlidingWindowOracle(spec)
    case 'sliding-log':
      return new SlidingLogOracle(spec)
    case 'concurrency':
      return new ConcurrencyOracle(spec)
    case 'all-of':
      return new AllOfOracle(spec.parts.map(oracleFor))
  }
}
