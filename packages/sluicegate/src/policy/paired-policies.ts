import { changedPolicy, type Policy } from './policy.js'
import { hasDefaultName } from './policy-options.js'

/**
 * For each policy of `next` the place in `before` of the one whose keys it takes over. A name that was given decides. One that follows from the numbers
 * may be that of several policies, whose time zones differ: so equal numbers come first, and then such a name where only one policy has it. Of what is
 * left, policies without given names are paired in the order of each algorithm; with as many on both sides all in their order, if nothing was paired
 * before, or `always`.
 */
export function pairedPolicies(before: readonly Policy[], next: readonly Policy[], always = false): readonly (number | undefined)[] {
  const pairs: (number | undefined)[] = next.map(() => undefined)
  const left = new Set(before.keys())
  const pair = (isPair: (one: Policy, other: Policy, isInPlace: boolean) => boolean): void => {
    for (const [i, policy] of next.entries()) {
      if (pairs[i] !== undefined) continue
      const found = [...left].find((j) => isPair(before[j] as Policy, policy, i === j))
      if (found === undefined) continue
      pairs[i] = found
      left.delete(found)
    }
  }
  const areAlike = (one: Policy, other: Policy): boolean => (isUnnamed(one) || isUnnamed(other)) && numbersOf(one) === numbersOf(other)
  pair((one, other) => one.name === other.name && !isUnnamed(other))
  pair((one, other, isInPlace) => isInPlace && areAlike(one, other))
  pair(areAlike)
  pair((one, other) => one.name === other.name && !isShared(one, before) && !isShared(other, next))
  const areAsMany = before.length === next.length && (always || left.size === before.length)
  pair((one, other) => areAsMany || (one.algorithm === other.algorithm && isUnnamed(one) && isUnnamed(other)))
  return pairs
}

/** As `allOf` renames the second of a name. */
function firstNameOf({ name }: Policy): string {
  return name.replace(/ \d+$/, '')
}

function isUnnamed(policy: Policy): boolean {
  return hasDefaultName(changedPolicy(policy, { name: firstNameOf(policy) }))
}

function isShared(policy: Policy, among: readonly Policy[]): boolean {
  return among.filter((other) => firstNameOf(other) === firstNameOf(policy)).length > 1
}

function numbersOf({ name, ...numbers }: Policy): string {
  return JSON.stringify(numbers)
}
