import { didYouMean } from '../../config/spelling.js'
import type { Engine, Key, ServedPolicy } from '../../engine/engine.js'
import { Problem } from './problem.js'
import { quoted } from './query.js'

/** The policy, key and cost of a request. The engine checks the key's length and the cost's range. */
export interface Ask {
  readonly served: ServedPolicy
  /** One for each part of an `all-of`, or one for all. */
  readonly key: Key
  readonly cost: number
}

const PARAMETERS: ReadonlySet<string> = new Set(['policy', 'key', 'cost'])
const LONE_SURROGATE = /\p{Surrogate}/u
const DIGITS = /^\d{1,15}$/

/**
 * The take or peek in `parameters`, which come from a query string (all texts), from headers (likewise) or from JSON.
 *
 * @throws {Problem} that names the wrong parameter.
 */
export function readAsk(engine: Engine, parameters: ReadonlyMap<string, unknown>): Ask {
  for (const name of parameters.keys()) {
    if (PARAMETERS.has(name)) continue
    const guess = didYouMean(name, PARAMETERS) || '; there are policy, key and cost'
    throw new Problem(400, 'PARAMETER_UNKNOWN', `unknown parameter ${quoted(name)}${guess}`)
  }
  const key = parameters.get('key')
  return {
    served: readPolicy(engine, parameters.get('policy')),
    // Only JSON distinguishes one key with a comma from two keys.
    key: Array.isArray(key) ? key.map(readKey) : readKey(key),
    cost: readCost(parameters.get('cost')),
  }
}

function readPolicy(engine: Engine, name: unknown): ServedPolicy {
  if (name === undefined) throw new Problem(400, 'POLICY_MISSING', 'policy is missing: give the name of a configured policy')
  if (typeof name !== 'string') throw new Problem(400, 'PARAMETER_INVALID', 'policy must be a string')
  const served = engine.policy(name)
  if (served !== undefined) return served
  const guess = didYouMean(
    name,
    Array.from(engine.policies, (known) => known.name),
  )
  throw new Problem(404, 'POLICY_UNKNOWN', `there is no policy ${quoted(name)}${guess}`)
}

function readKey(key: unknown): string {
  if (key === undefined || key === '')
    throw new Problem(400, 'KEY_MISSING', 'key is missing: give 1 to 1024 characters that say who is limited')
  if (typeof key !== 'string') throw new Problem(400, 'PARAMETER_INVALID', 'key must be a string')
  // JSON can spell half a character; two such keys could become one on their way through a proxy or a log.
  if (LONE_SURROGATE.test(key)) throw new Problem(400, 'KEY_INVALID', 'key has half of a surrogate pair: send well-formed Unicode')
  return key
}

function readCost(cost: unknown): number {
  if (cost === undefined) return 1
  if (typeof cost === 'number') return cost
  if (typeof cost === 'string' && DIGITS.test(cost)) return Number(cost)
  throw new Problem(400, 'COST_INVALID', 'cost must be an integer of at least 1')
}
