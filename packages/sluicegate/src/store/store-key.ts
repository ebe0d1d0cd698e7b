import type { Policy } from '../policy/policy.js'
import { JOINT } from '../policy/stored-name.js'

const IN_PREFIX = /[%:\s\p{Cc}\p{Surrogate}]/gu
const IN_NAMES = /[%:/\s\p{Cc}\p{Surrogate}]/gu
const IN_KEYS = /[%\s\p{Cc}\p{Surrogate}]/gu
/** Most keys: it is quicker to see than what is to be escaped. */
const PLAIN = /^[!-$&-~]*$/

/**
 * Where a store keeps the keys of a policy: `prefix:algorithm:name:key`, of a level `whole/level` for the name, as text without spaces, control
 * characters and lone surrogates. A policy of the same name with another algorithm has keys of its own.
 *
 * @param name of the account, as `storedNames` says.
 */
export function storeKeys(prefix: string, policy: Policy, name: string): (key: string) => string {
  const head = storeHead(prefix, policy, name)
  return (key) => head + (PLAIN.test(key) ? key : escaped(key, IN_KEYS))
}

/** The beginning of all keys of an account. */
export function storeHead(prefix: string, { algorithm }: Policy, name: string): string {
  const names = name.split(JOINT).map((each) => escaped(each, IN_NAMES))
  return `${escaped(prefix, IN_PREFIX)}:${algorithm}:${names.join('/')}:`
}

function escaped(text: string, what: RegExp): string {
  if (text.search(what) === -1) return text
  return text.replace(what, (character) => `%${character.charCodeAt(0).toString(16)}.`)
}
