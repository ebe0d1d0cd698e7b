import type { Oracle, OracleBooking, OracleDecision, OracleKey, PolicySpec } from './oracle.js'
import { ceilMs, max, toUs } from './oracle.js'

interface Kept<State> {
  /** Undefined: never seen. States are never changed, only replaced. */
  readonly state: State | undefined
  readonly blockedUntilUs: bigint | undefined
}

/** A fraction of tokens. */
export interface Tokens {
  readonly units: bigint
  readonly perToken: bigint
}

const NEW = { state: undefined, blockedUntilUs: undefined }

/**
 * What is the same for every algorithm of one state a key: the keys, the blocks, and how answers come of both. A blocked key
 * keeps its tokens and shows them; it is denied until both its block and its tokens let the request pass.
 */
export abstract class KeyedOracle<State, Spec extends { readonly limit: number } = { readonly limit: number }> implements Oracle {
  readonly #keys = new Map<string, Kept<State>>()
  /** How often its numbers changed. */
  #generation = 0
  /** {@link adopt} sets another. */
  protected spec: Spec

  constructor(spec: Spec) {
    this.spec = spec
  }

  /** What answers show as the limit. */
  protected limit(): number {
    return this.spec.limit
  }
  /** The most that one request can cost. */
  protected most(): number {
    return this.limit()
  }
  /** Whole tokens that are there, >= 0. */
  protected abstract remaining(state: State | undefined, nowUs: bigint): bigint
  /** The earliest time, now or later, at which a possible cost passes if no other call follows. */
  protected abstract passesAtUs(state: State | undefined, cost: bigint, nowUs: bigint): bigint
  /** When the key is full; now or before when it is. */
  protected abstract freshAtUs(state: State | undefined, nowUs: bigint): bigint
  /** The rest are the verbs. A take that passes: */
  protected abstract taken(state: State | undefined, cost: bigint, nowUs: bigint): State
  protected abstract refunded(state: State, tokens: bigint, nowUs: bigint): State | undefined
  protected abstract penalized(state: State | undefined, tokens: bigint, nowUs: bigint): State | undefined
  /** What passed under other numbers, as much of it as there is room for, or as they are beyond their limit; of some all of it. */
  protected filled(state: State | undefined, tokens: bigint, nowUs: bigint, _beyond: Tokens): State | undefined {
    return this.penalized(state, tokens, nowUs)
  }
  /** How far a key is beyond its limit because tokens are booked ahead. */
  protected beyond(_state: State | undefined, _nowUs: bigint): Tokens {
    return { units: 0n, perToken: 1n }
  }
  /** What part of a booking that may be spent at `atUs` comes back. */
  protected abstract givenBack(state: State, booking: OracleBooking, tokens: bigint, nowUs: bigint): State | undefined
  /** Puts another policy in force; answers with how a state goes over to it. */
  protected abstract adopt(spec: PolicySpec, nowUs: bigint): (state: State) => State | undefined
  /** A fresh oracle of the same policy. */
  protected abstract sibling(): KeyedOracle<State>

  protected afterReset(_state: State, _nowUs: bigint): State | undefined {
    return undefined
  }

  /** A booking is a take at the time at which it passes, made now. */
  protected booked(state: State | undefined, cost: bigint, atUs: bigint, _nowUs: bigint): State {
    return this.taken(state, cost, atUs)
  }

  protected canBookAt(_atUs: bigint, _nowUs: bigint): boolean {
    return true
  }

  /** The numbers of the policy: what was booked before they changed comes back no more, as the change may have forgiven it. */
  protected measureOf(): string {
    return JSON.stringify(this.spec)
  }

  protected noteOf(_state: State): bigint {
    return 0n
  }

  protected stateOf(key: OracleKey): State | undefined {
    return this.#kept(key).state
  }

  protected setState(key: OracleKey, state: State | undefined): void {
    this.#keys.set(textOf(key), { ...this.#kept(key), state })
  }

  take(key: OracleKey, cost: number, nowMs: number): OracleDecision {
    const nowUs = toUs(nowMs)
    const answer = this.#answer(key, cost, nowUs)
    if (!answer.allowed) return answer
    this.setState(key, this.taken(this.stateOf(key), BigInt(cost), nowUs))
    const { remaining, resetAfterMs } = this.#answer(key, 1, nowUs)
    return { ...answer, remaining, resetAfterMs }
  }

  peek(key: OracleKey, cost: number, nowMs: number): OracleDecision {
    return this.#answer(key, cost, toUs(nowMs))
  }

  refund(key: OracleKey, tokens: number, nowMs: number): OracleDecision {
    const state = this.stateOf(key)
    if (state !== undefined) this.setState(key, this.refunded(state, BigInt(tokens), toUs(nowMs)))
    return this.peek(key, 1, nowMs)
  }

  penalize(key: OracleKey, tokens: number, nowMs: number): OracleDecision {
    this.setState(key, this.penalized(this.stateOf(key), BigInt(tokens), toUs(nowMs)))
    return this.peek(key, 1, nowMs)
  }

  /** Counts what passed under other numbers of a policy: under those of `by`, as they are now. */
  fill(key: OracleKey, tokens: number, nowMs: number, by: KeyedOracle<unknown>): void {
    const nowUs = toUs(nowMs)
    this.setState(key, this.filled(this.stateOf(key), BigInt(tokens), nowUs, by.beyond(by.stateOf(key), nowUs)))
  }

  /** The longest block wins, 0 lifts it; the shortest is one microsecond. */
  block(key: OracleKey, durationMs: number, nowMs: number): OracleDecision {
    const nowUs = toUs(nowMs)
    const { state, blockedUntilUs } = this.#kept(key)
    const untilUs = durationMs === 0 ? undefined : max(blockedUntilUs ?? nowUs, nowUs + max(1n, toUs(durationMs)))
    this.#keys.set(textOf(key), { state, blockedUntilUs: untilUs })
    return this.peek(key, 1, nowMs)
  }

  reset(key: OracleKey, nowMs: number): OracleDecision {
    const state = this.stateOf(key)
    this.#keys.set(textOf(key), { ...NEW, state: state === undefined ? undefined : this.afterReset(state, toUs(nowMs)) })
    return this.peek(key, 1, nowMs)
  }

  /** A blocked key books nothing: it is denied everything. */
  reserve(key: OracleKey, cost: number, nowMs: number): OracleBooking {
    const nowUs = toUs(nowMs)
    const answer = this.#answer(key, cost, nowUs)
    const isDenied = cost > this.most() || (this.#kept(key).blockedUntilUs ?? nowUs) > nowUs
    const atUs = isDenied ? nowUs : this.passesAtUs(this.stateOf(key), BigInt(cost), nowUs)
    if (isDenied || !this.canBookAt(atUs, nowUs)) {
      return { key, allowed: false, waitMs: answer.retryAfterMs, atUs, decision: answer, bookedUs: nowUs, cost: BigInt(cost) }
    }
    const state = this.booked(this.stateOf(key), BigInt(cost), atUs, nowUs)
    this.setState(key, state)
    const booking = { key, allowed: true, waitMs: ceilMs(atUs - nowUs), atUs, decision: this.peek(key, 1, nowMs), note: this.noteOf(state) }
    return { ...booking, bookedUs: nowUs, cost: BigInt(cost), generation: this.#generation }
  }

  cancel(booking: OracleBooking, tokens: number, nowMs: number): OracleDecision {
    const state = this.stateOf(booking.key)
    if (state !== undefined && booking.allowed && booking.generation === this.#generation) {
      this.setState(booking.key, this.givenBack(state, booking, BigInt(tokens), toUs(nowMs)))
    }
    return this.peek(booking.key, 1, nowMs)
  }

  update(spec: PolicySpec, nowMs: number): void {
    const before = this.measureOf()
    const carried = this.adopt(spec, toUs(nowMs))
    if (this.measureOf() !== before) this.#generation++
    for (const [key, { state }] of this.#keys) if (state !== undefined) this.setState(key, carried(state))
  }

  copy(): Oracle {
    const copy = this.sibling()
    for (const [key, kept] of this.#keys) copy.#keys.set(key, kept)
    copy.#generation = this.#generation
    return copy
  }

  stateTextOf(key: OracleKey): string {
    return JSON.stringify(this.#kept(key), (_, value: unknown) => (typeof value === 'bigint' ? `${value}` : value))
  }

  forget(key: OracleKey): void {
    this.setState(key, undefined)
  }

  #answer(key: OracleKey, cost: number, nowUs: bigint): OracleDecision {
    const { state, blockedUntilUs = nowUs } = this.#kept(key)
    const impossible = cost > this.most()
    const passesAtUs = impossible ? nowUs : max(blockedUntilUs, this.passesAtUs(state, BigInt(cost), nowUs))
    return {
      allowed: !impossible && passesAtUs <= nowUs,
      limit: this.limit(),
      remaining: Number(this.remaining(state, nowUs)),
      retryAfterMs: impossible ? Number.POSITIVE_INFINITY : ceilMs(passesAtUs - nowUs),
      resetAfterMs: ceilMs(max(blockedUntilUs, this.freshAtUs(state, nowUs)) - nowUs),
    }
  }

  #kept(key: OracleKey): Kept<State> {
    return this.#keys.get(textOf(key)) ?? NEW
  }
}

/** An algorithm that is not all-of has one key. */
function textOf(key: OracleKey): string {
  if (typeof key === 'string') return key
  throw new TypeError('several keys are for all-of')
}
