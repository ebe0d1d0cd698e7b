import { type RegionBudget, type RegionGrant, type Renewal, sharesByDemand } from './region-budget.js'

interface Outstanding extends RegionGrant {
  /** When it has surely ended, by the clock of the authority. */
  readonly endUs: number
}

/** What an authority remembers of its grants. */
export interface AuthorityRules {
  /** Of outstanding grants to a region, those that it may still go by. */
  remembered(outstanding: readonly Outstanding[]): readonly Outstanding[]
  /** For how long a restarted authority grants nothing. */
  quietUs(termUs: number): number
}

export const SOUND_AUTHORITY: AuthorityRules = {
  remembered: (outstanding) => outstanding,
  quietUs: (termUs) => termUs,
}

/**
 * Splits the rate of a budget between regions by their demand. It grants a region a rate for a term, and counts it as used until the region
 * has surely stopped to go by it: the term has ended, or the region has acknowledged a later grant. So at every time the rates in force add up
 * to at most the limit, whatever messages are lost and however long a region is cut off.
 *
 * It keeps nothing on disk: after a restart every grant made before ends within one term, in which it grants nothing. Regions have their
 * floors then.
 */
export class RegionAuthority {
  readonly #budget: RegionBudget
  readonly #rules: AuthorityRules
  readonly #outstanding: Outstanding[][]
  readonly #demand: number[]
  #quietUntilUs: number
  #id = 0

  constructor(budget: RegionBudget, rules: AuthorityRules, nowUs: number) {
    this.#budget = budget
    this.#rules = rules
    this.#outstanding = Array.from({ length: budget.regions }, () => [])
    this.#demand = Array<number>(budget.regions).fill(0)
    this.#quietUntilUs = nowUs
  }

  /** Forgets everything but the number of its last grant, which its clock could tell as well. */
  restart(nowUs: number): void {
    for (const each of this.#outstanding) each.length = 0
    this.#demand.fill(0)
    this.#quietUntilUs = nowUs + this.#rules.quietUs(this.#budget.termMs * 1000)
  }

  /** The rate of a region for a term; undefined while none is granted. */
  renew({ region, demand, applied }: Renewal, nowUs: number): RegionGrant | undefined {
    this.#demand[region] = demand
    const own = this.#outstanding[region] as Outstanding[]
    if (applied !== undefined) this.#keep(region, ({ id }) => id >= applied)
    if (nowUs < this.#quietUntilUs) return undefined
    const { limit, regions, floor, termMs } = this.#budget
    let others = 0
    for (let other = 0; other < regions; other++) {
      this.#keep(other, ({ endUs }) => endUs > nowUs)
      if (other === region) continue
      others += this.#booked(other)
      // What a region wanted a term ago, and has not renewed since, keeps nothing from the others.
      if (this.#outstanding[other]?.length === 0) this.#demand[other] = 0
    }
    const wanted = sharesByDemand(this.#budget, this.#demand)[region] as number
    const grant = { id: ++this.#id, limit: Math.max(floor, Math.min(wanted, limit - others)) }
    own.push({ ...grant, endUs: nowUs + termMs * 1000 })
    return grant
  }

  #keep(region: number, isKept: (each: Outstanding) => boolean): void {
    const own = this.#outstanding[region] as Outstanding[]
    own.splice(0, own.length, ...own.filter(isKept))
  }

  /** The largest rate that a region may go by now. */
  #booked(region: number): number {
    const own = this.#rules.remembered(this.#outstanding[region] as Outstanding[])
    return Math.max(this.#budget.floor, ...own.map(({ limit }) => limit))
  }
}
