import { PolicyError } from 'sluicegate'
import { type Prices, prices, type Usage } from 'sluicegate/prices'
import type { PricesConfig } from 'sluicegate-config/prices.js'

export type { Usage } from 'sluicegate/prices'

/** Tokens of a policy, or what was used of a model, which has a price. */
export type Cost = number | Usage

/** Costs by the prices in force. */
export class Costs {
  #prices: Prices | undefined

  /** Prices by these from now on; undefined: none. */
  use(config: PricesConfig | undefined): void {
    this.#prices = config && prices(config.table)
  }

  /** @throws {PolicyError} `COST_INVALID` for a usage that has no price. */
  of(cost: Cost): number {
    return typeof cost === 'number' ? cost : this.#known().cost(cost)
  }

  /** Output tokens that `budget` pays for beside a usage. */
  affordable(usage: Usage, budget: number): number {
    return this.#known().affordable(usage, budget)
  }

  #known(): Prices {
    if (this.#prices === undefined) {
      const mend = 'must be an integer of at least 0, or give the configuration `prices`, by which models cost tokens'
      throw new PolicyError('COST_INVALID', 'cost', undefined, mend)
    }
    return this.#prices
  }
}

/**
 * What work has used of each model. A piece costs as much as all so far, less all before: what is rounded up is rounded once for a work, not for
 * each piece.
 */
export class WorkUsage {
  readonly #ofModels = new Map<string, Required<Usage>>()

  /** What a piece costs more. `keep` counts it, once it was spent. */
  piece(costs: Costs, cost: Cost): { readonly tokens: number; keep(): void } {
    if (typeof cost === 'number') return { tokens: cost, keep() {} }
    // What is no usage is refused here.
    costs.of(cost)
    const { model, input = 0, cached = 0, output = 0 } = cost
    const before = this.#ofModels.get(model) ?? { model, input: 0, cached: 0, output: 0 }
    const after = { model, input: before.input + input, cached: before.cached + cached, output: before.output + output }
    return {
      tokens: costs.of(after) - costs.of(before),
      keep: () => void this.#ofModels.set(model, after),
    }
  }
}
