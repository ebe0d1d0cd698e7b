import type { Oracle, OracleBooking, OracleDecision, OracleKey, PolicySpec } from './oracle.js'

/** What a limiter of several policies must answer: an oracle each, charged all together or not at all. */
export class AllOfOracle implements Oracle {
  readonly #parts: readonly Oracle[]

  constructor(parts: readonly Oracle[]) {
    this.#parts = parts
  }

  take(key: OracleKey, cost: number, nowMs: number): OracleDecision {
    const before = this.peek(key, cost, nowMs)
    return before.allowed ? combined(this.#asked(key, (part, own) => part.take(own, cost, nowMs))) : before
  }

  peek(key: OracleKey, cost: number, nowMs: number): OracleDecision {
    return combined(this.#asked(key, (part, own) => part.peek(own, cost, nowMs)))
  }

  refund(key: OracleKey, tokens: number, nowMs: number): OracleDecision {
    return combined(this.#asked(key, (part, own) => part.refund(own, tokens, nowMs)))
  }

  penalize(key: OracleKey, tokens: number, nowMs: number): OracleDecision {
    return combined(this.#asked(key, (part, own) => part.penalize(own, tokens, nowMs)))
  }

  block(key: OracleKey, durationMs: number, nowMs: number): OracleDecision {
    return combined(this.#asked(key, (part, own) => part.block(own, durationMs, nowMs)))
  }

  reset(key: OracleKey, nowMs: number): OracleDecision {
    return combined(this.#asked(key, (part, own) => part.reset(own, nowMs)))
  }

  /** Only what passes now: parts that pass at different times would be charged for times at which nothing happens. */
  reserve(key: OracleKey, cost: number, nowMs: number): OracleBooking {
    const before = this.peek(key, cost, nowMs)
    if (!before.allowed) return { key, allowed: false, waitMs: before.retryAfterMs, atUs: 0n, decision: before }
    const parts = this.#asked(key, (part, own) => part.reserve(own, cost, nowMs))
    return { key, allowed: true, waitMs: 0, atUs: parts[0]?.atUs ?? 0n, decision: this.peek(key, 1, nowMs), parts }
  }

  cancel({ key, parts }: OracleBooking, tokens: number, nowMs: number): OracleDecision {
    for (const [i, booking] of (parts ?? []).entries()) this.#parts[i]?.cancel(booking, tokens, nowMs)
    return this.peek(key, 1, nowMs)
  }

  update(spec: PolicySpec, nowMs: number): void {
    if (spec.algorithm !== 'all-of' || spec.parts.length !== this.#parts.length) throw new TypeError('all-of stays all of the same')
    for (const [i, part] of this.#parts.entries()) part.update(spec.parts[i] as PolicySpec, nowMs)
  }

  copy(): Oracle {
    return new AllOfOracle(this.#parts.map((part) => part.copy()))
  }

  stateTextOf(key: OracleKey): string {
    return this.#asked(key, (part, own) => part.stateTextOf(own)).join()
  }

  forget(key: OracleKey): void {
    this.#asked(key, (part, own) => part.forget(own))
  }

  /** Each part about its own key, or all about the one. */
  #asked<Answer>(key: OracleKey, ask: (part: Oracle, own: string) => Answer): readonly Answer[] {
    return this.#parts.map((part, i) => {
      const own = typeof key === 'string' ? key : key[i]
      if (own === undefined) throw new RangeError(`no key for part ${i}`)
      return ask(part, own)
    })
  }
}

/** Allowed: the part with the least remaining speaks; denied: of those that deny the one with the longest wait. */
function combined(parts: readonly OracleDecision[]): OracleDecision {
  const denied = parts.filter(({ allowed }) => !allowed)
  const binding =
    denied.length > 0
      ? denied.reduce((a, b) => (b.retryAfterMs > a.retryAfterMs ? b : a))
      : parts.reduce((a, b) => (b.remaining < a.remaining ? b : a))
  return { ...binding, resetAfterMs: Math.max(...parts.map(({ resetAfterMs }) => resetAfterMs)), parts }
}
