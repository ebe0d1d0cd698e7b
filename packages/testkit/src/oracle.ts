import { ceilDiv, type ExactEmission, exactEmission, type RateSpec } from './oracle-emission.js'

/** A decision as the oracle predicts it: the fields that do not depend on where it was made. */
export interface OracleDecision {
  readonly allowed: boolean
  readonly limit: number
  readonly remaining: number
  readonly retryAfterMs: number
  readonly resetAfterMs: number
}

/** Where a key stands: the time at which its debt is paid, in units, and the end of its block in microseconds. */
interface KeyState {
  arrival: bigint
  blockedUntilUs: bigint | undefined
}

const MAX_PENALTY_BURSTS = 10n
/** Before every reading: a key that owes nothing, wherever the clock goes. */
const NEVER = -(2n ** 120n)

/**
 * What a token bucket or GCRA limiter must answer, in whole numbers of any size: one theoretical arrival time a key, and
 * the declared rounding of the emission interval ({@link exactEmission}). It knows nothing of the library's core.
 *
 * Readings of the clock are milliseconds, taken to the nearest microsecond. The arrival time stays when the clock steps
 * back, so a key waits longer by the step and no more. A blocked key keeps its tokens and shows them; it is denied until
 * both its block and its tokens let the request pass.
 */
export class Oracle {
  #spec: RateSpec
  #emission: ExactEmission
  readonly #keys = new Map<string, KeyState>()

  constructor(spec: RateSpec) {
    this.#spec = spec
    this.#emission = accepted(spec)
  }

  take(key: string, cost: number, nowMs: number): OracleDecision {
    const nowUs = toUs(nowMs)
    const answer = this.#answer(key, cost, nowUs)
    if (!answer.allowed) return answer
    const { q, perToken, capacity } = this.#emission
    const debt = this.#debt(key, nowUs) + BigInt(cost) * perToken
    this.#state(key).arrival = nowUs * q + debt
    return { ...answer, remaining: Number((capacity - debt) / perToken), resetAfterMs: this.#resetAfterMs(key, nowUs) }
  }

  peek(key: string, cost: number, nowMs: number): OracleDecision {
    return this.#answer(key, cost, toUs(nowMs))
  }

  /** Stops at full: a key without debt stays as it is. */
  refund(key: string, tokens: number, nowMs: number): OracleDecision {
    const nowUs = toUs(nowMs)
    const debt = this.#debt(key, nowUs)
    const left = max(0n, debt - BigInt(tokens) * this.#emission.perToken)
    if (debt > 0n) this.#state(key).arrival = nowUs * this.#emission.q + left
    return this.#answer(key, 1, nowUs)
  }

  /** Down to ten bursts below empty; a key further down, after a step back, stays where it is. */
  penalize(key: string, tokens: number, nowMs: number): OracleDecision {
    const nowUs = toUs(nowMs)
    const { q, perToken, capacity } = this.#emission
    const debt = this.#debt(key, nowUs)
    const floor = capacity * (MAX_PENALTY_BURSTS + 1n)
    this.#state(key).arrival = nowUs * q + max(debt, min(floor, debt + BigInt(tokens) * perToken))
    return this.#answer(key, 1, nowUs)
  }

  /** The longest block wins, 0 lifts it; the shortest is one microsecond. */
  block(key: string, durationMs: number, nowMs: number): OracleDecision {
    const nowUs = toUs(nowMs)
    const state = this.#state(key)
    state.blockedUntilUs = durationMs === 0 ? undefined : max(state.blockedUntilUs ?? nowUs, nowUs + max(1n, toUs(durationMs)))
    return this.#answer(key, 1, nowUs)
  }

  /** No debt and no block from now on. A later step back finds the key paid up at this moment, not before it. */
  reset(key: string, nowMs: number): OracleDecision {
    const nowUs = toUs(nowMs)
    const state = this.#keys.get(key)
    if (state !== undefined) {
      if (this.#debt(key, nowUs) > 0n) state.arrival = nowUs * this.#emission.q
      state.blockedUntilUs = undefined
    }
    return this.#answer(key, 1, nowUs)
  }

  /** The same, to go on from here in another way. */
  copy(): Oracle {
    const copy = new Oracle(this.#spec)
    for (const [key, state] of this.#keys) copy.#keys.set(key, { ...state })
    return copy
  }

  /** Two oracles with the same answer here answer alike about the key for ever. */
  standing(key: string): string {
    const state = this.#keys.get(key)
    return state === undefined ? 'new' : `${state.arrival} ${state.blockedUntilUs}`
  }

  /** What is left of a key whose tokens a full table forgot: its block. */
  forget(key: string): void {
    const state = this.#keys.get(key)
    if (state !== undefined) state.arrival = NEVER
  }

  /** What each key has spent stays spent, at most the new burst; a fraction of a token is rounded up to the new units. */
  update(spec: RateSpec, nowMs: number): void {
    const nowUs = toUs(nowMs)
    const old = this.#emission
    const next = accepted(spec)
    for (const [key, state] of this.#keys) {
      const spent = ceilDiv(this.#debt(key, nowUs) * next.perToken, old.perToken)
      state.arrival = nowUs * next.q + min(next.capacity, spent)
    }
    this.#spec = spec
    this.#emission = next
  }

  #answer(key: string, cost: number, nowUs: bigint): OracleDecision {
    const { q, perToken, capacity } = this.#emission
    const debt = this.#debt(key, nowUs)
    const over = debt + BigInt(cost) * perToken - capacity
    const blockedUs = (this.#keys.get(key)?.blockedUntilUs ?? nowUs) - nowUs
    const impossible = cost > this.#spec.burst
    const waitMs = max(wholeMs(over, q), wholeMs(blockedUs, 1n))
    return {
      allowed: !impossible && waitMs === 0n,
      limit: this.#spec.limit,
      remaining: Number(max(0n, capacity - debt) / perToken),
      retryAfterMs: impossible ? Number.POSITIVE_INFINITY : Number(waitMs),
      resetAfterMs: this.#resetAfterMs(key, nowUs),
    }
  }

  #resetAfterMs(key: string, nowUs: bigint): number {
    const blockedUs = (this.#keys.get(key)?.blockedUntilUs ?? nowUs) - nowUs
    return Number(max(wholeMs(this.#debt(key, nowUs), this.#emission.q), wholeMs(blockedUs, 1n)))
  }

  #debt(key: string, nowUs: bigint): bigint {
    const state = this.#keys.get(key)
    return state === undefined ? 0n : max(0n, state.arrival - nowUs * this.#emission.q)
  }

  #state(key: string): KeyState {
    const found = this.#keys.get(key)
    if (found !== undefined) return found
    const fresh: KeyState = { arrival: NEVER, blockedUntilUs: undefined }
    this.#keys.set(key, fresh)
    return fresh
  }
}

/** A reading in milliseconds as whole microseconds, the nearest. */
function toUs(ms: number): bigint {
  return BigInt(Math.round(ms * 1000))
}

/** Units (`q` a microsecond) as whole milliseconds, rounded up; 0 for none or less. */
function wholeMs(units: bigint, q: bigint): bigint {
  return units <= 0n ? 0n : ceilDiv(units, q * 1000n)
}

function accepted(spec: RateSpec): ExactEmission {
  const emission = exactEmission(spec)
  if (emission === undefined) throw new RangeError(`no exact form for ${JSON.stringify(spec)}`)
  return emission
}

function max(a: bigint, b: bigint): bigint {
  return a > b ? a : b
}

function min(a: bigint, b: bigint): bigint {
  return a < b ? a : b
}
