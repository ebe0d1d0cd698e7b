import type { Policy } from '../policy/policy.js'

const IN_NAMES = /[%:\s\p{Cc}\p{Surrogate}]/gu
const IN_KEYS = /[%\s\p{Cc}\p{Surrogate}]/gu

/**
 * Where a store keeps a key: `prefix:algorithm:name:key`, as text without spaces, control characters and lone surrogates. A policy of the
 * same name with another algorithm has keys of its own.
 */
export function storeKey(prefix: string, { algorithm, name }: Policy, key: string): string {
  return `${escaped(prefix, IN_NAMES)}:${algorithm}:${escaped(name, IN_NAMES)}:${escaped(key, IN_KEYS)}`
}

function escaped(text: string, what: RegExp): string {
  if (text.search(what) === -1) return text
  return text.replace(what, (character) => `%${character.charCodeAt(0).toString(16)}.`)
}
