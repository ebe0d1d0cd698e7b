import { createLimiter, type Limiter, type ManualClock, manualClock } from 'sluicegate'
import { surelyUs } from '../../../packages/sluicegate/dist/lease/leasing.js'
import { type RegionBudget, type RegionGrant, regionBurst, regionPolicy } from './region-budget.js'

/** How a store goes by its grants. */
export interface RegionRules {
  burstOf(budget: RegionBudget): number
  /** The time from which a term counts, and how long it surely lasts on this clock. */
  endsFromUs(sentUs: number, arrivedUs: number): number
  termUs(termUs: number): number
  /** Whether a grant takes the place of the last one. */
  isLater(id: number, last: number | undefined): boolean
}

export const SOUND_REGION: RegionRules = {
  burstOf: regionBurst,
  endsFromUs: (sentUs) => sentUs,
  termUs: surelyUs,
  isLater: (id, last) => last === undefined || id > last,
}

const KEY = 'the key'

/** The store of one region for one key: a limiter of the library, whose rate is what was granted until the term ends, and its floor after that. */
export class RegionStore {
  readonly #budget: RegionBudget
  readonly #rules: RegionRules
  readonly #burst: number
  readonly #clock: ManualClock
  readonly #limiter: Limiter
  #applied: number | undefined
  #limit: number
  #untilUs = Number.POSITIVE_INFINITY

  /** @param nowUs by the clock of the region, as all times here. */
  constructor(budget: RegionBudget, rules: RegionRules, nowUs: number) {
    this.#budget = budget
    this.#rules = rules
    this.#burst = rules.burstOf(budget)
    this.#limit = budget.floor
    this.#clock = manualClock(nowUs / 1000)
    this.#limiter = createLimiter(regionPolicy(budget, budget.floor, this.#burst), { clock: this.#clock, maxKeys: 16 })
  }

  /** The grant that it goes by, or went by last. */
  get applied(): number | undefined {
    return this.#applied
  }

  /** Tokens in a window that it admits now. */
  get limit(): number {
    return this.#limit
  }

  /** When its grant ends. */
  get untilUs(): number {
    return this.#untilUs
  }

  take(nowUs: number): boolean {
    this.#advance(nowUs)
    return this.#limiter.take(KEY).allowed
  }

  granted({ id, limit }: RegionGrant, sentUs: number, nowUs: number): void {
    this.#advance(nowUs)
    const { endsFromUs, termUs, isLater } = this.#rules
    const untilUs = endsFromUs(sentUs, nowUs) + termUs(this.#budget.termMs * 1000)
    if (!isLater(id, this.#applied) || untilUs <= nowUs) return
    this.#applied = id
    this.#use(limit)
    this.#untilUs = untilUs
  }

  /** What renews the grant has restarted, and does not know which one is in force: the floor is, until the next one. */
  forget(nowUs: number): void {
    this.#advance(nowUs)
    this.#applied = undefined
    this.#use(this.#budget.floor)
  }

  close(): void {
    this.#limiter.close()
  }

  /** The rate ends with the term, not with the next request. */
  #advance(nowUs: number): void {
    if (this.#untilUs <= nowUs) {
      this.#clock.set(this.#untilUs / 1000)
      this.#use(this.#budget.floor)
    }
    this.#clock.set(nowUs / 1000)
  }

  #use(limit: number): void {
    this.#untilUs = Number.POSITIVE_INFINITY
    if (limit === this.#limit) return
    this.#limit = limit
    this.#limiter.update(regionPolicy(this.#budget, limit, this.#burst))
  }
}
