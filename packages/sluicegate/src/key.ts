import { PolicyError } from './errors.js'
import type { Policy } from './policy/policy.js'

/** In UTF-16 units. */
export const MAX_KEY_LENGTH = 1024

/** What strings {@link isKey} asks for, in words. */
export const KEY_WORDS = `of 1 to ${MAX_KEY_LENGTH} characters`

export function isKey(key: unknown): key is string {
  return typeof key === 'string' && key.length > 0 && key.length <= MAX_KEY_LENGTH
}

/** @throws {PolicyError} `KEY_INVALID` */
export function checkKey(key: unknown): asserts key is string {
  if (!isKey(key)) throw new PolicyError('KEY_INVALID', 'key', key, `must be a string ${KEY_WORDS}`)
}

/** The caller may change its array later. */
export function ownKey(key: Key): Key {
  return Array.isArray(key) ? [...key] : key
}

/** The subject of a limit: a string of 1 to 1,024 UTF-16 units. With `allOf` also an array of them, one for each of its policies. */
export type Key = string | readonly string[]

/** A key for each policy of an `allOf` in memory, by its name; see {@link levels}. */
export interface KeysByName {
  readonly [name: string]: string
}

export function isByName(key: unknown): key is KeysByName {
  return typeof key === 'object' && key !== null && !Array.isArray(key)
}

/**
 * A key without names, in the order of the policies; of a single policy, without `names`, the key as it is, unchecked.
 *
 * @throws {PolicyError} `KEY_INVALID` when the names are not those of the policies.
 */
export function keyInOrder(names: readonly string[], key: Key | KeysByName): Key {
  if (names.length === 0 || !isByName(key)) return key as Key
  const given = Object.keys(key)
  if (given.length !== names.length || !names.every((name) => Object.hasOwn(key, name))) {
    throw new PolicyError('KEY_INVALID', 'key', key, `must have one key for each of ${names.join(', ')}`)
  }
  return names.map((name) => key[name] as string)
}

/**
 * A unique string per key: a single key never equals a list of keys.
 *
 * @throws {PolicyError} `KEY_INVALID` for what is neither a string nor an array of strings. Their length is not checked.
 */
export function nameOf(key: Key): string {
  if (typeof key === 'string') return `1${key}`
  if (!Array.isArray(key)) checkKey(key)
  if (!key.every((own) => typeof own === 'string')) checkKey(key)
  return `n${JSON.stringify(key)}`
}

/** The single keys that a key stands for, each once. */
export function partsOf(key: Key): Iterable<string> {
  return typeof key === 'string' ? [key] : new Set(key)
}

/**
 * The keys of `policies` policies: one key for all, or one for each.
 *
 * @throws {PolicyError} `KEY_INVALID`
 */
export function keysFor(policies: number, key: Key): readonly string[] {
  if (typeof key === 'string') {
    checkKey(key)
    return new Array<string>(policies).fill(key)
  }
  if (!Array.isArray(key) || key.length !== policies) {
    throw new PolicyError('KEY_INVALID', 'key', key, `must be a string, or one for each of the ${policies} policies`)
  }
  for (const own of key) checkKey(own)
  return key
}

/**
 * The key of each policy that is asked: of `allOf` as {@link keysFor} says, else the one.
 *
 * @throws {PolicyError} `KEY_INVALID`
 */
export function keysUnder({ policies }: Pick<Policy, 'policies'>, key: Key): readonly string[] {
  if (policies !== undefined) return keysFor(policies.length, key)
  checkKey(key)
  return [key]
}

/** The key of each policy, also of a key by name. @throws {PolicyError} `KEY_INVALID` */
export function keysOf(policy: Pick<Policy, 'policies'>, key: Key | KeysByName): readonly string[] {
  const names = isByName(key) ? (policy.policies ?? []).map(({ name }) => name) : []
  return keysUnder(policy, keyInOrder(names, key))
}
