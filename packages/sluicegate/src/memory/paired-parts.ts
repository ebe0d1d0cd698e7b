import type { Policy } from '../policy/policy.js'
import type { MemoryLimiter } from './memory-limiter.js'

/**
 * For each policy the part whose keys it takes over: that of its name, or, where the name was not given and follows from its numbers, the next part of the
 * same algorithm that is so too. With as many policies as parts, all others are paired in their order if no name is on both sides, or `always`.
 */
export function pairedParts(
  parts: readonly MemoryLimiter[],
  policies: readonly Policy[],
  always = false,
): readonly (MemoryLimiter | undefined)[] {
  const names = new Set(policies.map(({ name }) => name))
  const others = parts.filter((part) => !names.has(part.policyOf().name))
  const areAsMany = parts.length === policies.length && (always || others.length === parts.length)
  return policies.map((policy) => {
    const named = parts.find((part) => part.policyOf().name === policy.name)
    if (named !== undefined) return named
    const next = areAsMany ? 0 : others.findIndex((part) => areUnnamed(part.policyOf(), policy))
    return next < 0 ? undefined : others.splice(next, 1)[0]
  })
}

function areUnnamed(one: Policy, other: Policy): boolean {
  return one.algorithm === other.algorithm && [one, other].every(({ name, algorithm, limit }) => name.startsWith(`${algorithm}-${limit}-`))
}
