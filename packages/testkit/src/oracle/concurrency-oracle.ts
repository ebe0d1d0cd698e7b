import { KeyedOracle } from './keyed-oracle.js'
import type { ConcurrencySpec, OracleBooking, OracleDecision, OracleKey, PolicySpec } from './oracle.js'
import { max, min, toUs } from './oracle.js'

interface Held {
  readonly permit: bigint
  readonly expiresUs: bigint
  readonly cost: bigint
}

/** What is in flight, in the order in which it was given, and the latest reading at which something changed. */
interface InFlight {
  readonly held: readonly Held[]
  readonly highUs: bigint
}

/** The answer to a take, and the number of the permit. */
export interface OraclePermit extends OracleDecision {
  readonly permit?: bigint
}

const NO_HOLDER = -1n

/**
 * What a concurrency limiter must answer: a list of permits a key, each with the time at which it expires. Time never runs
 * back for a key: an earlier reading counts as the latest at which something changed.
 */
export class ConcurrencyOracle extends KeyedOracle<InFlight, ConcurrencySpec> {
  #granted = 0n

  override take(key: OracleKey, cost: number, nowMs: number): OraclePermit {
    const answer = super.take(key, cost, nowMs)
    return answer.allowed ? { ...answer, permit: this.#granted } : answer
  }

  /** False when it held nothing any more. */
  release(key: OracleKey, permit: bigint, nowMs: number): boolean {
    return this.#changed(key, permit, nowMs, () => [])
  }

  /** False when it held nothing any more. */
  heartbeat(key: OracleKey, permit: bigint, nowMs: number): boolean {
    return this.#changed(key, permit, nowMs, (held, untilUs) => [{ ...held, expiresUs: untilUs }])
  }

  /** A change of the numbers forgives no permit: what was booked before it comes back. */
  protected override measureOf(): string {
    return ''
  }

  protected override remaining(state: InFlight | undefined, nowUs: bigint): bigint {
    return max(0n, this.#limit() - used(state, nowUs))
  }

  /** Unless a release comes before: when enough has expired. */
  protected override passesAtUs(state: InFlight | undefined, cost: bigint, nowUs: bigint): bigint {
    const moments = [nowUs, ...live(state, nowUs).map(({ expiresUs }) => expiresUs)].sort((a, b) => (a < b ? -1 : 1))
    const passes = moments.find((us) => used(state, us) + cost <= this.#limit())
    if (passes === undefined) throw new RangeError('an impossible cost never passes')
    return passes
  }

  protected override freshAtUs(state: InFlight | undefined, nowUs: bigint): bigint {
    return live(state, nowUs).reduce((latest, { expiresUs }) => max(latest, expiresUs), nowUs)
  }

  protected override taken(state: InFlight | undefined, cost: bigint, nowUs: bigint): InFlight {
    return this.#given(state, { permit: ++this.#granted, cost }, nowUs)
  }

  /** Those that expire last lose first; of equals the newest. */
  protected override refunded(state: InFlight, tokens: bigint, nowUs: bigint): InFlight {
    let left = tokens
    const byExpiry = live(state, nowUs)
      .toReversed()
      .sort((a, b) => (a.expiresUs > b.expiresUs ? -1 : a.expiresUs < b.expiresUs ? 1 : 0))
    const back = new Map<bigint | Held, bigint>()
    for (const held of byExpiry) {
      back.set(held, min(left, held.cost))
      left -= min(left, held.cost)
    }
    const kept = state.held.map((held) => ({ ...held, cost: held.cost - (back.get(held) ?? 0n) })).filter(({ cost }) => cost > 0n)
    return left === tokens ? state : { highUs: max(nowUs, state.highUs), held: kept }
  }

  /** Permits without a holder, as far as there is room. */
  protected override penalized(state: InFlight | undefined, tokens: bigint, nowUs: bigint): InFlight | undefined {
    const cost = min(tokens, this.#limit() - used(state, nowUs))
    return cost > 0n ? this.#given(state, { permit: NO_HOLDER, cost }, nowUs) : state
  }

  /** Only what passes now: when a permit comes back is unknown. */
  protected override canBookAt(atUs: bigint, nowUs: bigint): boolean {
    return atUs <= nowUs
  }

  protected override noteOf(): bigint {
    return this.#granted
  }

  protected override givenBack(state: InFlight, { note }: OracleBooking, tokens: bigint, nowUs: bigint): InFlight {
    return changed(state, note, nowUs, (held) => (held.cost > tokens ? [{ ...held, cost: held.cost - tokens }] : [])) ?? state
  }

  /** A permit keeps its time. */
  protected override adopt(spec: PolicySpec): (state: InFlight) => InFlight {
    if (spec.algorithm !== 'concurrency') throw new TypeError('concurrency stays concurrency')
    this.spec = spec
    return (state) => state
  }

  protected override sibling(): ConcurrencyOracle {
    const sibling = new ConcurrencyOracle(this.spec)
    sibling.#granted = this.#granted
    return sibling
  }

  #changed(key: OracleKey, permit: bigint, nowMs: number, change: (held: Held, untilUs: bigint) => readonly Held[]): boolean {
    const state = this.stateOf(key)
    const nowUs = toUs(nowMs)
    const untilUs = max(nowUs, state?.highUs ?? nowUs) + toUs(this.spec.windowMs)
    const next = state && changed(state, permit, nowUs, (held) => change(held, untilUs))
    if (next === undefined) return false
    this.setState(key, next)
    return true
  }

  #given(state: InFlight | undefined, held: Omit<Held, 'expiresUs'>, nowUs: bigint): InFlight {
    const highUs = max(nowUs, state?.highUs ?? nowUs)
    return { held: [...live(state, nowUs), { ...held, expiresUs: highUs + toUs(this.spec.windowMs) }], highUs }
  }

  #limit(): bigint {
    return BigInt(this.spec.limit)
  }
}

function live(state: InFlight | undefined, us: bigint): readonly Held[] {
  if (state === undefined) return []
  return state.held.filter(({ expiresUs }) => expiresUs > max(us, state.highUs))
}

function used(state: InFlight | undefined, us: bigint): bigint {
  return live(state, us).reduce((sum, { cost }) => sum + cost, 0n)
}

/** With another one, or none, in the place of a permit; undefined when it holds nothing any more. */
function changed(
  state: InFlight,
  permit: bigint | undefined,
  nowUs: bigint,
  change: (held: Held) => readonly Held[],
): InFlight | undefined {
  if (!live(state, nowUs).some((held) => held.permit === permit)) return undefined
  return { held: state.held.flatMap((held) => (held.permit === permit ? change(held) : [held])), highUs: max(nowUs, state.highUs) }
}
