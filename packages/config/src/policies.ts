import { ALGORITHM_NAMES } from './algorithms.js'
import { isAllOf, readAllOf } from './all-of.js'
import { memoryFault } from './memory-fault.js'
import { valuesOf } from './option.js'
import type { PolicyConfig } from './policy-config.js'
import { PRIORITY_OPTIONS, readPriorities } from './priorities.js'
import { type Rule, readRule } from './rule.js'
import type { Section } from './section.js'
import { SOFT, type SoftLimits } from './soft.js'
import { TABLE } from './table-size.js'
import { readTiers, TIER_OPTIONS } from './tiers/read-tiers.js'

const CHOICES = [...ALGORITHM_NAMES, 'all-of']
/** Each policy has its own table; a metric's labels grow with their number. */
export const MAX_POLICIES = 1_000
const NONE = 'must name at least one policy, for example "per-user: { algorithm: token-bucket, limit: 100, window: 1m }"'

/**
 * The section `policies` of each file: each policy under its name, which no other file uses.
 *
 * @param isRequired whether there has to be one.
 */
export function readPolicies(roots: readonly Section[], isRequired: boolean): PolicyConfig[] {
  const fileByName = new Map<string, string>()
  const policies = roots.flatMap((root) => {
    const section = root.section('policies')
    const names = section.names()
    for (const name of names) {
      const file = fileByName.get(name)
      if (file !== undefined) section.nameFault(name, `is the name of a policy in ${file} already: give this one another`)
      fileByName.set(name, root.file)
    }
    if (fileByName.size > MAX_POLICIES) root.fault('policies', `must be at most ${MAX_POLICIES} in all files, not ${fileByName.size}`)
    return names.flatMap((name) => readPolicy(section, name) ?? [])
  })
  if (isRequired && fileByName.size === 0) roots[0]?.fault('policies', NONE)
  return policies
}

function readPolicy(policies: Section, name: string): PolicyConfig | undefined {
  const section = policies.section(name)
  const nameFault = (reason: string): void => policies.nameFault(name, `name: ${reason}`)
  const rule = isAllOf(section) ? readAllOf(section, name, nameFault) : readRule(section, CHOICES, name, nameFault)
  const { maxSettle, ...table } = valuesOf(section, TABLE)
  const all = SOFT.soft.read(section)
  const isWhole = isAllOf(section)
  if (isWhole) refuseOfSingle(section)
  const tiers = isWhole ? undefined : readTiers(section, rule.policy, TIER_OPTIONS)
  const priorities = isWhole ? undefined : readPriorities(section, PRIORITY_OPTIONS)
  section.done(rule.belongs)
  if (rule.policy === undefined) return undefined
  const soft = softOf(rule, all)
  const more = { ...(tiers && { tiers }), ...(priorities && { priorities }), ...(maxSettle && { maxSettle }), ...(soft && { soft }) }
  const config = { policy: rule.policy, ...table, ...more }
  const reason = memoryFault(config)
  if (reason !== undefined) section.fault('max-keys', reason)
  return config
}

/** Of each policy, or of each part its own or those of the whole; undefined without any. */
function softOf({ policy, soft }: Rule, all: ReturnType<SoftLimits['get']>): SoftLimits | undefined {
  const names = (policy?.policies ?? (policy === undefined ? [] : [policy])).map(({ name }) => name)
  const given = names.flatMap((name) => {
    const own = soft?.get(name) ?? all
    return own === undefined ? [] : [[name, own] as const]
  })
  return given.length === 0 ? undefined : new Map(given)
}

/** Each part has its own limit, and a key may be one of several. */
function refuseOfSingle(section: Section): void {
  for (const option of ['tiers', 'keys', 'tier-file', 'priorities', 'default-priority', 'max-priority'])
    if (section.has(option)) section.nameFault(option, 'is not for all-of: use policies of their own, and a batch with "all"')
}
