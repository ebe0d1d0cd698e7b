import type { Policy } from './policy.js'
import { hasDefaultName } from './policy-options.js'

/** Stands between the name of a whole and that of one of its policies: names are printable, so none contains it. */
export const JOINT = '\n'

/**
 * The names of a policy's accounts in a store: its own; of several policies each has that of the whole before it, so that levels of two wholes
 * may be called alike. Where the whole was given no name, those of one name are one account.
 */
export function storedNames(policy: Policy): readonly string[] {
  const { policies, name } = policy
  if (policies === undefined) return [name]
  return policies.map((part) => (hasDefaultName(policy) ? part.name : `${name}${JOINT}${part.name}`))
}
