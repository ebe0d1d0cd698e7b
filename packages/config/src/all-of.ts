import { allOf, type Policy, PolicyError, tokenBucket } from 'sluicegate'
import { ALGORITHM_NAMES, RULE_OPTIONS } from './algorithms.js'
import { type NameFault, reasonWithoutOption } from './judged-policy.js'
import { type Rule, readRule } from './rule.js'
import type { Section } from './section.js'

/** The most parts that the library charges together. */
export const MAX_PARTS = 8
const OF_THE_WHOLE: ReadonlySet<string> = new Set(['max-keys', 'on-full', 'max-settle'])
const OF_A_PART: ReadonlySet<string> = new Set([...RULE_OPTIONS, 'name'])
/** Replaces faulty parts, so that the name is checked as well. */
const STAND_IN = tokenBucket({ limit: 1, window: '1s' })

/** Whether `section` describes an all-of. */
export function isAllOf(section: Section): boolean {
  return section.names().includes('all-of') || section.written('algorithm') === 'all-of'
}

/** The policies listed under `all-of` as one policy; `algorithm` may be left out, since the list implies it. */
export function readAllOf(section: Section, name: string, nameFault: NameFault): Rule {
  if (section.has('algorithm')) section.oneOf('algorithm', ['all-of'])
  section.require('all-of', ': list the policies that all have to agree')
  const list = section.list('all-of', 'policies')
  const parts = list ?? []
  if (list !== undefined && (parts.length < 1 || parts.length > MAX_PARTS))
    section.fault('all-of', `must have 1 to ${MAX_PARTS} policies, not ${parts.length}`)
  const names = new Map<string, string>()
  const policies = parts.flatMap((part) => readPart(part, names) ?? [])
  return {
    policy: wholeOf(policies.length === 0 ? [STAND_IN] : policies.slice(0, MAX_PARTS), name, nameFault),
    belongs: (option) => (OF_A_PART.has(option) ? 'is for a policy in the list all-of: write it there' : undefined),
  }
}

function wholeOf(policies: readonly Policy[], name: string, nameFault: NameFault): Policy | undefined {
  try {
    return allOf(policies, { name })
  } catch (error) {
    if (!(error instanceof PolicyError) || error.option !== 'name') throw error
    nameFault(reasonWithoutOption(error))
    return undefined
  }
}

/** A part, whose name is unique: `names` has the names of the parts before it, with their places. */
function readPart(part: Section, names: Map<string, string>): Policy | undefined {
  if (isAllOf(part)) {
    part.fault('all-of', 'cannot stand in another all-of: list all policies in one')
    return undefined
  }
  const rule = readRule(part, ALGORITHM_NAMES, part.text('name', 'burst'), (reason) => part.fault('name', reason))
  part.done((option) => (OF_THE_WHOLE.has(option) ? 'is for the whole policy: write it beside all-of' : rule.belongs(option)))
  const { policy } = rule
  if (policy === undefined) return undefined
  const other = names.get(policy.name)
  if (other !== undefined) part.fault('name', `${JSON.stringify(policy.name)} is the name of ${other} already: give this one another`)
  names.set(policy.name, part.path)
  return policy
}
