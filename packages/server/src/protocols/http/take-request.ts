import type { Engine, Key, ServedPolicy } from '../../engine/engine.js'
import { Parameters } from './parameters.js'

/** The policy, key and cost of a request. The engine checks the key's length and the cost's range. */
export interface TakeRequest {
  readonly served: ServedPolicy
  /** One for each part of an `all-of`, or one for all. */
  readonly key: Key
  readonly cost: number
}

const PARAMETERS = ['policy', 'key', 'cost', 'priority']

/**
 * The take or peek in `parameters`, which come from a query string (all texts), from headers (likewise) or from JSON.
 *
 * @throws {Problem} that names the wrong parameter.
 */
export function parseTakeRequest(engine: Engine, values: ReadonlyMap<string, unknown>): TakeRequest & { readonly parameters: Parameters } {
  const parameters = new Parameters(values, PARAMETERS)
  return { ...takeRequestFrom(engine, parameters), parameters }
}

/** The same from parameters that may have others beside them. */
export function takeRequestFrom(engine: Engine, parameters: Parameters): TakeRequest {
  const served = parameters.policy(engine)
  return { served, key: parameters.key(served), cost: engine.costOf(parameters.cost('cost', 1)) }
}
