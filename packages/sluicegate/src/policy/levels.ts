import { PolicyError } from '../errors.js'
import { allOf, MOST_POLICIES } from './all-of.js'
import { type AllOfPolicy, changedPolicy, type Policy } from './policy.js'
import { checkedName } from './policy-options.js'

/**
 * {@link allOf} with names: a request passes when every level has room, and is charged to all of them or to none. Keys are given by name, and
 * decisions say by `policy` which level binds: the name of a level is that of its policy.
 *
 * @param policies 1 to 8 of them, the widest first.
 * @param options `name`: in a store it stands before the names of the levels, so that another limiter may have levels of the same names. Limiters share a
 * level where both wholes have one name, or none.
 * @throws {PolicyError} `POLICY_INVALID`, `NAME_INVALID`
 * @example
 * const limiter = createLimiter(levels({
 *   org: fixedWindow({ limit: 1_000_000, window: 'month' }),
 *   user: tokenBucket({ limit: 5_000, window: '1m' }),
 * }))
 * limiter.take({ org: 'acme', user: 'ada' }).policy // 'user'
 */
export function levels<const Levels extends { readonly [name: string]: Policy }>(
  policies: Levels,
  options: { readonly name?: string } = {},
): AllOfPolicy<readonly Levels[keyof Levels][]> {
  const isObject = typeof policies === 'object' && policies !== null && !Array.isArray(policies)
  const named = isObject && !Object.hasOwn(policies, 'algorithm') ? Object.entries<Policy>(policies) : []
  if (named.length < 1 || named.length > MOST_POLICIES) {
    const mend = `must be an object of 1 to ${MOST_POLICIES} policies by name, such as { org: fixedWindow({ ... }) }`
    throw new PolicyError('POLICY_INVALID', 'policies', policies, mend)
  }
  // A name of digits would come first, wherever it was written.
  const digits = named.find(([name]) => /^\d+$/.test(name))
  if (digits !== undefined) throw new PolicyError('NAME_INVALID', 'name', digits[0], 'must not be a number')
  return allOf(
    named.map(([name, policy]) => changedPolicy(policy, { name: checkedName(name, name) })) as unknown as readonly Levels[keyof Levels][],
    options,
  )
}
