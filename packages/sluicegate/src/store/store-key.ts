import type { Policy } from '../policy/policy.js'

const IN_NAMES = /[%:\s\p{Cc}\p{Surrogate}]/gu
const IN_KEYS = /[%\s\p{Cc}\p{Surrogate}]/gu
/** Most keys: it is quicker to see than what is to be escaped. */
const PLAIN = /^[!-$&-~]*$/

/** What all keys of a policy begin with, under the prefix that was used last. */
const heads = /* @__PURE__ */ new WeakMap<Policy, { readonly prefix: string; readonly head: string }>()

/**
 * Where a store keeps a key: `prefix:algorithm:name:key`, as text without spaces, control characters and lone surrogates. A policy of the
 * same name with another algorithm has keys of its own.
 */
export function storeKey(prefix: string, policy: Policy, key: string): string {
  let known = heads.get(policy)
  if (known?.prefix !== prefix) {
    const { algorithm, name } = policy
    known = { prefix, head: `${escaped(prefix, IN_NAMES)}:${algorithm}:${escaped(name, IN_NAMES)}:` }
    heads.set(policy, known)
  }
  return known.head + (PLAIN.test(key) ? key : escaped(key, IN_KEYS))
}

function escaped(text: string, what: RegExp): string {
  if (text.search(what) === -1) return text
  return text.replace(what, (character) => `%${character.charCodeAt(0).toString(16)}.`)
}
