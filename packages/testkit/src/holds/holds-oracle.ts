import { ceilMs, mostCost, type Oracle, type SinglePolicySpec, toUs } from '../oracle/oracle.js'
import { oracleFor } from '../oracle/versioned-oracle.js'

/** Faults that limiters with holds have had, or that this one could have. */
export type HoldFault =
  | 'an add frees the whole hold'
  | 'a hold is freed before it is spent'
  | 'a slot that has ended counts'
  | 'a lapsed hold is spent from'
  | 'a hold is not renewed'
  | 'a take does not see what is held'
  | 'free room is counted without the holds of others'
  | 'closing frees nothing'
  | 'a hold is charged when it is opened'
  | 'one level that has room is held though another has none'

export const HOLD_FAULTS: readonly HoldFault[] = [
  'an add frees the whole hold',
  'a hold is freed before it is spent',
  'a slot that has ended counts',
  'a lapsed hold is spent from',
  'a hold is not renewed',
  'a take does not see what is held',
  'free room is counted without the holds of others',
  'closing frees nothing',
  'a hold is charged when it is opened',
  'one level that has room is held though another has none',
]

interface OpenWork {
  readonly keys: readonly string[]
  readonly ttlUs: bigint
  readonly most: number
  readonly finishes: boolean
  rest: number
  endUs: bigint
  used: number
  over: number
  isClosed: boolean
}

/** What an open, a take or a peek has to answer. */
export interface HoldsAnswer {
  readonly allowed: boolean
  readonly retryAfterMs: number
}

/**
 * What levels with holds must answer, in whole numbers: each level an oracle of what is spent, beside a list of all work that is open. Written from the
 * contract, without slots and sums. A fault makes it the oracle of a limiter that has it.
 */
export class HoldsOracle {
  private readonly parts: readonly Oracle[]
  private specs: readonly SinglePolicySpec[]
  private readonly fault: HoldFault | undefined
  private readonly works: OpenWork[] = []

  constructor(specs: readonly SinglePolicySpec[], fault?: HoldFault) {
    this.specs = specs
    this.parts = specs.map(oracleFor)
    this.fault = fault
  }

  peek(keys: readonly string[], cost: number, nowMs: number): HoldsAnswer {
    const retryAfterMs = Math.max(...this.parts.map((_, i) => this.waitMs(i, keys[i] as string, cost, nowMs)))
    return { allowed: retryAfterMs === 0, retryAfterMs }
  }

  take(keys: readonly string[], cost: number, nowMs: number): HoldsAnswer {
    const isBlind = this.fault === 'a take does not see what is held'
    const answer = isBlind ? this.blind(keys, cost, nowMs) : this.peek(keys, cost, nowMs)
    if (answer.allowed) for (const [i, part] of this.parts.entries()) part.take(keys[i] as string, cost, nowMs)
    return answer
  }

  open(
    keys: readonly string[],
    {
      expect,
      most,
      ttlMs,
      finishes,
    }: { readonly expect: number; readonly most: number; readonly ttlMs: number; readonly finishes: boolean },
    nowMs: number,
  ): HoldsAnswer & { readonly work?: number } {
    const held = Math.min(expect, most)
    const answer = this.peek(keys, held, nowMs)
    if (!answer.allowed) {
      if (
        this.fault === 'one level that has room is held though another has none' &&
        this.waitMs(0, keys[0] as string, held, nowMs) === 0
      ) {
        this.works.push({ ...this.begun([keys[0] as string], held, most, ttlMs, finishes, nowMs) })
      }
      return answer
    }
    if (this.fault === 'a hold is charged when it is opened') this.charge(keys, held, nowMs)
    this.works.push(this.begun(keys, held, most, ttlMs, finishes, nowMs))
    return { ...answer, work: this.works.length - 1 }
  }

  add(work: number, cost: number, nowMs: number): boolean {
    const own = this.works[work] as OpenWork
    if (own.isClosed || cost > own.most - own.used) return false
    const rest = this.restOf(own, nowMs)
    const spendable = this.fault === 'a lapsed hold is spent from' ? own.rest : rest
    if (cost <= spendable) {
      // Somebody else may have it in between: here, all of it is gone.
      if (this.fault === 'a hold is freed before it is spent') own.rest = 0
      this.charge(own.keys, cost, nowMs)
      this.renew(own, this.fault === 'an add frees the whole hold' ? 0 : Math.max(0, own.rest - cost), rest, nowMs)
    } else {
      const free = this.free(own.keys, nowMs)
      if (cost > rest + free && !own.finishes) return false
      this.charge(own.keys, cost, nowMs)
      this.renew(own, 0, rest, nowMs)
      own.over += Math.max(0, cost - rest - free)
    }
    own.used += cost
    return true
  }

  close(work: number, cost: number | undefined, nowMs: number): void {
    const own = this.works[work] as OpenWork
    if (own.isClosed) return
    const missing = Math.max(0, (cost ?? own.used) - own.used)
    const rest = this.restOf(own, nowMs)
    own.over += Math.max(0, missing - rest - this.free(own.keys, nowMs))
    this.charge(own.keys, missing, nowMs)
    own.used += missing
    own.isClosed = true
    if (this.fault !== 'closing frees nothing') own.rest = 0
  }

  /** How much of it is spent, and how much of that as debt. */
  workOf(work: number, nowMs: number): { readonly used: number; readonly over: number; readonly held: number } {
    const own = this.works[work] as OpenWork
    return { used: own.used, over: own.over, held: own.isClosed ? 0 : this.restOf(own, nowMs) }
  }

  penalize(keys: readonly string[], tokens: number, nowMs: number): void {
    for (const [i, part] of this.parts.entries()) part.penalize(keys[i] as string, tokens, nowMs)
  }

  reset(keys: readonly string[], nowMs: number): void {
    for (const [i, part] of this.parts.entries()) part.reset(keys[i] as string, nowMs)
  }

  update(specs: readonly SinglePolicySpec[], nowMs: number): void {
    this.specs = specs
    for (const [i, part] of this.parts.entries()) part.update(specs[i] as SinglePolicySpec, nowMs)
  }

  private begun(keys: readonly string[], rest: number, most: number, ttlMs: number, finishes: boolean, nowMs: number): OpenWork {
    const ttlUs = toUs(ttlMs)
    return { keys, ttlUs, most, finishes, rest, endUs: endOf(toUs(nowMs), ttlUs), used: 0, over: 0, isClosed: false }
  }

  /** Each piece renews the hold. */
  private renew(own: OpenWork, rest: number, before: number, nowMs: number): void {
    own.rest = before === 0 && this.fault !== 'a lapsed hold is spent from' ? 0 : rest
    if (this.fault !== 'a hold is not renewed') own.endUs = endOf(toUs(nowMs), own.ttlUs)
  }

  private restOf({ rest, endUs }: OpenWork, nowMs: number): number {
    return endUs > toUs(nowMs) ? rest : 0
  }

  /** What is held of a level's key from a time on, if nothing is added. */
  private held(i: number, key: string, atUs: bigint): number {
    let held = 0
    for (const { keys, rest, endUs } of this.works) {
      if (keys[i] === key && (endUs > atUs || this.fault === 'a slot that has ended counts')) held += rest
    }
    return held
  }

  private waitMs(i: number, key: string, cost: number, nowMs: number): number {
    const nowUs = toUs(nowMs)
    const part = this.parts[i] as Oracle
    let soonestMs = Number.POSITIVE_INFINITY
    // What holds nothing frees nothing when it ends.
    const holding = this.works.filter(({ keys, rest, endUs }) => keys[i] === key && rest > 0 && endUs > nowUs)
    for (const fromUs of new Set([nowUs, ...holding.map(({ endUs }) => endUs)])) {
      const need = this.held(i, key, fromUs) + cost
      const { retryAfterMs } = part.peek(key, need, nowMs)
      soonestMs = Math.min(soonestMs, Math.max(ceilMs(fromUs - nowUs), retryAfterMs))
    }
    return soonestMs
  }

  private blind(keys: readonly string[], cost: number, nowMs: number): HoldsAnswer {
    const retryAfterMs = Math.max(...this.parts.map((part, i) => part.peek(keys[i] as string, cost, nowMs).retryAfterMs))
    return { allowed: retryAfterMs === 0, retryAfterMs }
  }

  private free(keys: readonly string[], nowMs: number): number {
    const room = keys.map((key, i) => {
      const { remaining } = (this.parts[i] as Oracle).peek(key, 1, nowMs)
      return remaining - (this.fault === 'free room is counted without the holds of others' ? 0 : this.held(i, key, toUs(nowMs)))
    })
    return Math.max(0, Math.min(...room))
  }

  /** What is due is charged whatever is there. */
  private charge(keys: readonly string[], cost: number, nowMs: number): void {
    if (cost === 0) return
    for (const [i, part] of this.parts.entries()) {
      const key = keys[i] as string
      const fits = cost <= mostCost(this.specs[i] as SinglePolicySpec) && part.peek(key, cost, nowMs).allowed
      if (fits) part.take(key, cost, nowMs)
      else part.penalize(key, cost, nowMs)
    }
  }
}

/** A ttl later, rounded up to the next multiple of the largest power of two of microseconds that is at most an eighth of it. */
function endOf(nowUs: bigint, ttlUs: bigint): bigint {
  let width = 1n
  while (width * 2n <= ttlUs / 8n) width *= 2n
  const endUs = nowUs + ttlUs
  return ((endUs + width - 1n) / width) * width
}
