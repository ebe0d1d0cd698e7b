import { PolicyError } from '../errors.js'
import { checkOptions, has } from '../options/option-checks.js'
import { type AllOfPolicy, frozenPolicy, type Policy } from './policy.js'
import { checkedName, MAX_NAME_LENGTH } from './policy-options.js'
import { remadePolicy, SINGLE_POLICIES } from './single-policy.js'

export const MOST_POLICIES = 8

/**
 * Several policies as one: a request passes when all of them let it pass, and is charged to all of them or to none. All may
 * count the same key, or each its own, for example a user, a team and the whole service. Decisions and headers identify them by name, stores by the
 * given name of the whole and theirs: the second policy of one name is renamed `<name> 2`, and so on.
 *
 * @param policies 1 to 8 of them.
 * @throws {PolicyError} `POLICY_INVALID`, also for one `allOf` within another.
 * @example
 * const limiter = createLimiter(allOf([tokenBucket({ limit: 10, window: '1s' }), fixedWindow({ limit: 1000, window: 'day' })]))
 */
export function allOf<const Parts extends readonly Policy[]>(
  policies: Parts,
  options: { readonly name?: string } = {},
): AllOfPolicy<Parts> {
  if (isPolicy(policies) || (Array.isArray(policies) && isPolicy(options))) {
    throw new PolicyError('POLICY_INVALID', 'policies', policies, 'must be one array of policies: say allOf([a, b]), with brackets')
  }
  const own = checkOptions(options, ['name'], '{ name: "api" }', 'allOf()')
  if (!Array.isArray(policies) || policies.length < 1 || policies.length > MOST_POLICIES) {
    throw new PolicyError('POLICY_INVALID', 'policies', policies, `must be an array of 1 to ${MOST_POLICIES} policies`)
  }
  if (policies.some((policy: Policy | undefined) => policy?.algorithm === 'all-of')) {
    throw new PolicyError('POLICY_INVALID', 'policies', policies, 'must not hold another allOf: name all policies in one')
  }
  const parts = withUniqueNames(policies.map((policy, i) => remadePolicy(SINGLE_POLICIES, policy, `policies[${i}]`)))
  const name = checkedName(own.name, `all-of-${parts.length}`)
  return frozenPolicy<AllOfPolicy<Parts>>({
    algorithm: 'all-of',
    name,
    limit: Math.min(...parts.map(({ limit }) => limit)),
    windowMs: Math.max(...parts.map(({ windowMs }) => windowMs)),
    burst: Math.min(...parts.map(({ burst }) => burst)),
    policies: Object.freeze(parts) as readonly Policy[] as Parts,
  })
}

function isPolicy(value: unknown): boolean {
  return typeof value === 'object' && value !== null && has(value, 'algorithm')
}

/** Renames policies until all names are unique; the first of each name keeps it. */
function withUniqueNames(parts: readonly Policy[]): readonly Policy[] {
  const names = new Set(parts.map(({ name }) => name))
  return parts.map((part, i) => {
    if (parts.findIndex(({ name }) => name === part.name) === i) return part
    const name = freeName(part.name, names)
    names.add(name)
    return frozenPolicy({ ...part, name })
  })
}

function freeName(taken: string, names: ReadonlySet<string>): string {
  for (let n = 2; ; n++) {
    const name = `${taken.slice(0, MAX_NAME_LENGTH - ` ${n}`.length)} ${n}`
    if (!names.has(name)) return name
  }
}
