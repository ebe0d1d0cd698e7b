import type { Engine, Key, ServedPolicy } from '../../engine/engine.js'
import { Parameters } from './parameters.js'

/** The policy, key and cost of a request. The engine checks the key's length and the cost's range. */
export interface Ask {
  readonly served: ServedPolicy
  /** One for each part of an `all-of`, or one for all. */
  readonly key: Key
  readonly cost: number
}

const ASK = ['policy', 'key', 'cost', 'priority']

/**
 * The take or peek in `parameters`, which come from a query string (all texts), from headers (likewise) or from JSON.
 *
 * @throws {Problem} that names the wrong parameter.
 */
export function readAsk(engine: Engine, values: ReadonlyMap<string, unknown>): Ask & { readonly parameters: Parameters } {
  const parameters = new Parameters(values, ASK)
  return { ...askOf(engine, parameters), parameters }
}

/** The same from parameters that may have others beside them. */
export function askOf(engine: Engine, parameters: Parameters): Ask {
  return { served: parameters.policy(engine), key: parameters.key(), cost: parameters.tokens('cost', 1) }
}
