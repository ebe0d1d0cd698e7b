import { type Awaitable, isPromise } from '../awaitable.js'
import { nameOf } from '../key.js'
import type { Delay, SlowDown } from '../slow-down.js'
import type { Charge } from './limit.js'
import { LimitResult } from './limit-result.js'

/**
 * Takes for one request from several limits: from all of them, or from none.
 *
 * 1. Limits that answer a peek at once are peeked. If some would deny, only these take, so that the denial is recorded there.
 * 2. Otherwise the limits take one after another, up to the first that denies: first those that cannot be peeked, because they are remote, then
 *    those of this process.
 * 3. If one denies after all, because another thread or process took in between, or if one fails, all charges are undone.
 */
export class TakeAll<Request> {
  private readonly charges: readonly Charge<Request>[]
  private readonly request: Request
  /** By charge: the preview, then the result of the take. */
  private readonly results: (LimitResult | undefined)[]
  /** Indexes of charges in the order in which they take. */
  private readonly order: readonly number[]
  /** The first ones in that order, which deny by their preview: all of them take. */
  private readonly denying: number
  private isDenied = false

  constructor(charges: readonly Charge<Request>[], request: Request) {
    this.charges = charges
    this.request = request
    this.results = charges.map((charge) => charge.limit.preview(charge))
    const those = (is: (result: LimitResult | undefined) => boolean): number[] => [...charges.keys()].filter((i) => is(this.results[i]))
    const denying = those((result) => result?.denies === true)
    this.order = [...denying, ...those((result) => result === undefined), ...those((result) => result?.denies === false)]
    this.denying = denying.length
  }

  /** The results of the limits that were asked, in the order of the charges. */
  take(): Awaitable<readonly LimitResult[]> {
    return this.takeFrom(0)
  }

  private takeFrom(first: number): Awaitable<readonly LimitResult[]> {
    for (let i = first; i < this.order.length; i++) {
      if (this.isDenied && i >= this.denying) break
      const result = this.takeNext(i)
      if (isPromise(result)) return this.takeLater(result, i)
      this.record(result, i)
    }
    if (this.isDenied) this.undo()
    return this.results.filter((result) => result !== undefined)
  }

  private takeNext(i: number): Awaitable<LimitResult> {
    const charge = this.charges[this.order[i] as number] as Charge<Request>
    try {
      return charge.limit.take(charge, this.request)
    } catch (error) {
      this.undo()
      throw error
    }
  }

  private takeLater(result: Promise<LimitResult>, i: number): Promise<readonly LimitResult[]> {
    return result.then(
      (taken) => {
        this.record(taken, i)
        return this.takeFrom(i + 1)
      },
      (error) => {
        this.undo()
        throw error
      },
    )
  }

  private record(result: LimitResult, i: number): void {
    this.results[this.order[i] as number] = result
    if (result.denies) this.isDenied = true
  }

  private undo(): void {
    for (const result of this.results) result?.undo()
  }
}

/**
 * The longest delay by `slowDown` for a request that passes, with a place among the delayed requests of that limit; undefined for no delay. If
 * there is no place left: that limit's denial.
 */
export function longestDelay<Request>(results: readonly LimitResult[], request: Request): Delay | LimitResult | undefined {
  let longest: LimitResult | undefined
  let ms = 0
  for (const result of results) {
    const slowDown = slowDownOf<Request>(result)
    if (slowDown === undefined) continue
    const own = slowDown.delayMs(result.decision, result.policy, request)
    if (own <= ms) continue
    ms = own
    longest = result
  }
  if (longest === undefined) return undefined
  const leave = slowDownOf<Request>(longest)?.enter(nameOf(longest.key))
  return leave === undefined ? deniedFor(longest, ms) : { ms, leave }
}

/** Limits in shadow mode delay nothing. */
function slowDownOf<Request>({ limit }: LimitResult): SlowDown<Request> | undefined {
  return limit.shadow ? undefined : (limit.slowDown as SlowDown<Request> | undefined)
}

function deniedFor({ limit, key, cost, policy, decision }: LimitResult, ms: number): LimitResult {
  return new LimitResult(limit, key, cost, policy, { ...decision, allowed: false, retryAfterMs: Math.max(1, Math.ceil(ms)) })
}
