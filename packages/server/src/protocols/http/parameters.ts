import { didYouMean } from 'sluicegate-config/spelling.js'
import { type Cost, type Engine, type Key, MAX_HOLD_ID_LENGTH, type ServedPolicy, type Usage } from '../../engine/engine.js'
import { Problem } from './problem.js'
import { quoted } from './query.js'

const LONE_SURROGATE = /\p{Surrogate}/u
const DIGITS = /^\d{1,15}$/
const ANSWERED_BY = { reservation: '/v1/reserve', permit: '/v1/take', hold: '/v1/open' }
type TokensName = 'cost' | 'expect' | 'most' | 'tokens'
/** Longer than every id that the service makes. */
const MAX_ID_LENGTH = 64

/**
 * The parameters of one request, which come from a query string (all texts), from headers (likewise) or from JSON. Each reader throws a
 * {@link Problem} that names the wrong parameter.
 */
export class Parameters {
  readonly #values: ReadonlyMap<string, unknown>

  /** @throws {Problem} for a parameter that is not in `known`. */
  constructor(values: ReadonlyMap<string, unknown>, known: readonly string[]) {
    this.#values = values
    for (const name of values.keys()) {
      if (known.includes(name)) continue
      const guess = didYouMean(name, known) || `; there are ${known.slice(0, -1).join(', ')} and ${known.at(-1)}`
      throw new Problem(
        400,
        'PARAMETER_UNKNOWN',
        `unknown parameter ${quoted(name)}${known.length === 1 ? `; there is ${known[0]}` : guess}`,
      )
    }
  }

  has(name: string): boolean {
    return this.#values.has(name)
  }

  policy(engine: Engine): ServedPolicy {
    const name = this.#values.get('policy')
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

  /** One for each part of an `all-of`, by place or by name, or one for all. The engine checks its length. */
  key(served?: ServedPolicy): Key {
    const key = this.#values.get('key')
    // Only JSON distinguishes one key with a comma from two keys.
    if (Array.isArray(key)) return key.map(readKey)
    if (!isObject(key)) return readKey(key)
    const names = served?.policy.policies?.map(({ name }) => name)
    const given = Object.keys(key)
    if (names === undefined || given.length !== names.length || !names.every((name) => given.includes(name))) {
      const mend = names === undefined ? 'must be a string under this policy' : `must have one key for each of ${names.join(', ')}`
      throw new Problem(400, 'KEY_INVALID', `key ${mend}`)
    }
    return names.map((name) => readKey((key as Record<string, unknown>)[name]))
  }

  /** A whole number of tokens; the engine checks its range. `missing` is for a parameter that is left out; undefined: it has to be given. */
  tokens(name: TokensName, missing: number | undefined): number {
    const value = this.cost(name, missing)
    if (typeof value === 'number') return value
    throw this.#costProblem(name, missing)
  }

  /** The same, or what was used of a model, which has a price. */
  cost(name: TokensName, missing: number | undefined): Cost {
    const given = this.#values.get(name)
    const value = given === undefined ? missing : given
    if (value === Number.POSITIVE_INFINITY || value === Number.NEGATIVE_INFINITY) {
      throw new Problem(400, 'COST_INVALID', `${name}: must be an integer below 2^53`)
    }
    if (typeof value === 'number') return value
    if (typeof value === 'string' && DIGITS.test(value)) return Number(value)
    // The prices check what it has.
    if (isObject(value)) return value as Usage
    throw this.#costProblem(name, missing)
  }

  #costProblem(name: TokensName, missing: number | undefined): Problem {
    return new Problem(400, 'COST_INVALID', `${name} must be an integer of at least ${name === 'cost' && missing === undefined ? 0 : 1}`)
  }

  /** Milliseconds from `min` to `max`. */
  milliseconds(name: string, min: number, max: number): number | undefined {
    const value = this.#values.get(name)
    if (value === undefined) return undefined
    const ms = typeof value === 'string' && DIGITS.test(value) ? Number(value) : value
    if (typeof ms === 'number' && Number.isInteger(ms) && ms >= min && ms <= max) return ms
    throw new Problem(400, 'PARAMETER_INVALID', `${name} must be an integer from ${min} to ${max}, in milliseconds`)
  }

  /** The name of a class; one that the policy does not have is its default class. */
  priority(): string | undefined {
    const value = this.#values.get('priority')
    if (value === undefined || (typeof value === 'string' && value.length <= MAX_ID_LENGTH)) return value
    throw new Problem(400, 'PARAMETER_INVALID', `priority must be the name of a class, at most ${MAX_ID_LENGTH} characters`)
  }

  boolean(name: string): boolean {
    const value = this.#values.get(name) ?? false
    if (typeof value === 'boolean') return value
    throw new Problem(400, 'PARAMETER_INVALID', `${name} must be true or false`)
  }

  /** The id of what is held. */
  id(name: keyof typeof ANSWERED_BY): string {
    const value = this.#values.get(name)
    if (typeof value === 'string' && value !== '' && value.length <= MAX_HOLD_ID_LENGTH) return value
    throw new Problem(400, 'PARAMETER_INVALID', `${name} must be the id that ${ANSWERED_BY[name]} answered`)
  }

  /** The number of a call, by which a repeated one is known. */
  call(): number | undefined {
    const value = this.#values.get('call')
    if (value === undefined || (Number.isSafeInteger(value) && (value as number) >= 1)) return value as number | undefined
    throw new Problem(400, 'PARAMETER_INVALID', 'call must be an integer of at least 1, larger than that of the call before')
  }

  text(name: string): string | undefined {
    const value = this.#values.get(name)
    if (value === undefined || typeof value === 'string') return value
    throw new Problem(400, 'PARAMETER_INVALID', `${name} must be a text`)
  }

  /** One of several words. */
  word<Word extends string>(name: string, words: readonly Word[]): Word | undefined {
    const value = this.#values.get(name)
    const word = words.find((known) => known === value)
    if (value === undefined || word !== undefined) return word
    throw new Problem(400, 'PARAMETER_INVALID', `${name} must be ${words.slice(0, -1).join(', ')} or ${words.at(-1)}`)
  }

  /** The value as it was given. */
  given(name: string): unknown {
    return this.#values.get(name)
  }

  /** The objects of a list of 1 to `max`. */
  objects(name: string, max: number): Map<string, unknown>[] {
    const list = this.#values.get(name)
    if (!Array.isArray(list) || list.length < 1 || list.length > max || !list.every(isObject))
      throw new Problem(400, 'PARAMETER_INVALID', `${name} must be a list of 1 to ${max} objects`)
    return list.map((value) => new Map(Object.entries(value)))
  }
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function readKey(key: unknown): string {
  if (key === undefined || key === '')
    throw new Problem(400, 'KEY_MISSING', 'key is missing: give 1 to 1024 characters that say who is limited')
  if (typeof key !== 'string') throw new Problem(400, 'PARAMETER_INVALID', 'key must be a string')
  // JSON can spell half a character; two such keys could become one on their way through a proxy or a log.
  if (LONE_SURROGATE.test(key)) throw new Problem(400, 'KEY_INVALID', 'key has half of a surrogate pair: send well-formed Unicode')
  return key
}
