import { SeededRandom } from './seeded-random.js'

/** When requests of an open loop are due. Rates are requests per second of all processes together. */
export type ArrivalPlan =
  | { readonly kind: 'constant'; readonly rate: number }
  /** Independent requests: exponential gaps. */
  | { readonly kind: 'poisson'; readonly rate: number }
  /** The rate grows or falls evenly over the run. */
  | { readonly kind: 'ramp'; readonly fromRate: number; readonly toRate: number; readonly overMs: number }
  /** `size` requests at once, as often as the rate demands. */
  | { readonly kind: 'burst'; readonly rate: number; readonly size: number }

/** The share of one process: it sends each `of`th request, beginning with number `index`. */
export interface ProcessShare {
  readonly index: number
  readonly of: number
}

/** The intended starts of one process, in order; none of them depends on how fast anything answers. */
export class Arrivals {
  readonly #plan: ArrivalPlan
  readonly #share: ProcessShare
  readonly #random: SeededRandom
  #sent = 0
  #atMs = 0

  constructor(plan: ArrivalPlan, share: ProcessShare, seed: number) {
    this.#plan = plan
    this.#share = share
    this.#random = new SeededRandom(seed)
  }

  /** Milliseconds from the start of the run to the next intended start; `Infinity` when no more are due. */
  next(): number {
    const { index, of } = this.#share
    const plan = this.#plan
    if (plan.kind === 'poisson') {
      // Poisson streams of the processes add up to one of the whole rate.
      this.#atMs += (-Math.log(1 - this.#random.fraction()) * 1_000 * of) / plan.rate
      return this.#atMs
    }
    const n = this.#sent++ * of + index
    if (plan.kind === 'constant') return (n * 1_000) / plan.rate
    if (plan.kind === 'burst') return (Math.floor(n / plan.size) * plan.size * 1_000) / plan.rate
    return rampMs(n, plan)
  }
}

/** When request `n` is due: the time at which `from t + (to - from) t^2 / 2T` reaches n. */
function rampMs(n: number, { fromRate, toRate, overMs }: Extract<ArrivalPlan, { kind: 'ramp' }>): number {
  const fromPerMs = fromRate / 1_000
  const growth = (toRate - fromRate) / 1_000 / overMs
  const root = fromPerMs * fromPerMs + 2 * growth * n
  if (root < 0) return Number.POSITIVE_INFINITY
  // The form that loses no digits, and that also works without growth.
  const sum = fromPerMs + Math.sqrt(root)
  return n === 0 ? 0 : (2 * n) / sum
}
