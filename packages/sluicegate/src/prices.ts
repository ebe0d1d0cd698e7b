import { PolicyError } from './errors.js'
import { isInteger } from './options/option-checks.js'

/** What tokens of a model cost, in whole micro-units of your money for {@link PriceTable.per} tokens. */
interface ModelPrice {
  /** Of tokens that were read. */
  readonly input: number
  /** Of those that the provider had in its cache. Default: as `input`. */
  readonly cached?: number
  /** Of tokens that were written. */
  readonly output: number
}

/** Prices as data, yours: as a file has them, for example. */
export interface PriceTable {
  /** For how many tokens the prices are: 1 (default), 1,000 or 1,000,000. */
  readonly per?: number
  readonly models: { readonly [model: string]: ModelPrice }
}

/** Tokens that work has used. Those left out are 0. */
export interface Usage {
  readonly model: string
  /** Without those that were cached: of OpenAI's `prompt_tokens` take `cached_tokens` off. */
  readonly input?: number
  readonly cached?: number
  readonly output?: number
}

/** What {@link prices} makes of a table. */
export interface Prices {
  /** Names of the models. */
  readonly models: readonly string[]
  /**
   * What tokens cost, in whole micro-units. The sum is exact, and rounded up once: less than one micro-unit above it, and never below, so that no budget
   * is passed by many small costs. Of a work in pieces take the cost of all so far, less that of all before: then the pieces cost what the whole does.
   *
   * @throws {PolicyError} `COST_INVALID` for an unknown model, for tokens that are no integers from 0, and for a cost above 2^53 - 1.
   */
  cost(usage: Usage): number
  /**
   * The most output tokens that a budget pays for, beside what is used already: a `max_tokens` by which the provider itself stops. `Infinity` of a model
   * whose output is free.
   *
   * @param budget micro-units, such as `work.affordable(1)`.
   * @throws {PolicyError} `COST_INVALID`
   */
  affordable(usage: Usage, budget: number): number
}

const PER: readonly unknown[] = [1, 1_000, 1_000_000]
const MOST = BigInt(Number.MAX_SAFE_INTEGER)

interface Known {
  readonly input: bigint
  readonly cached: bigint
  readonly output: bigint
}

/**
 * Prices of models, in whole numbers: money is never a fraction that binary cannot hold.
 *
 * @throws {PolicyError} `OPTION_INVALID` for a price that is no integer from 0 to 2^53 - 1, and for another `per`.
 * @example
 * const price = prices({ per: 1_000_000, models: { small: { input: 150_000, cached: 75_000, output: 600_000 } } })
 * price.cost({ model: 'small', input: 1_000, output: 200 }) // 270 micro-dollars
 * price.affordable({ model: 'small', input: 1_000 }, 270) // 200 tokens
 */
export function prices(table: PriceTable): Prices {
  const { per = 1, models } = asObject('prices', table, ['per', 'models'])
  if (!PER.includes(per)) throw new PolicyError('OPTION_INVALID', 'per', per, 'must be 1, 1000 or 1000000')
  const known = new Map<string, Known>()
  for (const [model, price] of Object.entries(asObject('models', models))) known.set(model, knownPrice(model, price))
  const unit = BigInt(per)

  function exact(usage: Usage): { price: Known; cost: bigint } {
    const { model, input = 0, cached = 0, output = 0 } = asObject('cost', usage, ['model', 'input', 'cached', 'output'], 'COST_INVALID')
    const price = known.get(model)
    if (price === undefined) throw new PolicyError('COST_INVALID', 'model', model, 'must be one of those that have a price')
    const cost =
      tokensOf('input', input) * price.input + tokensOf('cached', cached) * price.cached + tokensOf('output', output) * price.output
    return { price, cost }
  }

  return {
    models: [...known.keys()],
    cost(usage) {
      const cost = (exact(usage).cost + unit - 1n) / unit
      if (cost > MOST) throw new PolicyError('COST_INVALID', 'cost', usage, 'must cost at most 9007199254740991 micro-units')
      return Number(cost)
    },
    affordable(usage, budget) {
      const { price, cost } = exact(usage)
      const left = tokensOf('budget', budget) * unit - cost
      if (left < 0n) return 0
      if (price.output === 0n) return Number.POSITIVE_INFINITY
      const tokens = left / price.output
      return Number(tokens < MOST ? tokens : MOST)
    },
  }
}

function knownPrice(model: string, price: ModelPrice): Known {
  const { input, output, cached = input } = asObject(`models.${model}`, price, ['input', 'cached', 'output'])
  const checked = (name: string, value: unknown): bigint => {
    if (isInteger(value, 0, Number.MAX_SAFE_INTEGER)) return BigInt(value)
    throw new PolicyError('OPTION_INVALID', `models.${model}.${name}`, value, 'must be an integer from 0, in micro-units')
  }
  return { input: checked('input', input), cached: checked('cached', cached), output: checked('output', output) }
}

function tokensOf(name: string, tokens: unknown): bigint {
  if (isInteger(tokens, 0, Number.MAX_SAFE_INTEGER)) return BigInt(tokens)
  throw new PolicyError('COST_INVALID', name, tokens, 'must be an integer from 0')
}

/** Data, whose members are its own: nothing that all objects inherit. */
function asObject<Value extends object>(
  option: string,
  value: Value,
  known?: readonly string[],
  code: 'OPTION_INVALID' | 'COST_INVALID' = 'OPTION_INVALID',
): Value {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw new PolicyError(code, option, value, 'must be an object')
  const own: object = Object.assign(Object.create(null), value)
  for (const name of known === undefined ? [] : Object.keys(own)) {
    if (!known?.includes(name)) throw new PolicyError(code, option, name, `has only ${known?.join(', ')}`)
  }
  return own as Value
}
