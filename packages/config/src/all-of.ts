import { allOf, type Policy, PolicyError, tokenBucket } from 'sluicegate'
import { ALGORITHM_NAMES, RULE_OPTIONS } from './algorithms.js'
import { type NameFault, reasonWithoutOption } from './judged-policy.js'
import { type Rule, readRule } from './rule.js'
import type { Section } from './section.js'
import { SOFT, type SoftLimits } from './soft.js'

type SoftByPart = Map<string, NonNullable<ReturnType<SoftLimits['get']>>>

/** The most parts that the library charges together. */
export const MAX_PARTS = 8
const OF_THE_WHOLE: ReadonlySet<string> = new Set(['max-keys', 'on-full', 'max-settle'])
const OF_A_PART: ReadonlySet<string> = new Set([...RULE_OPTIONS, 'name'])
/** Replaces faulty parts, so that the name is checked as well. */
const STAND_IN = tokenBucket({ limit: 1, window: '1s' })

/** Whether `section` describes an all-of, in a list or as levels with names. */
export function isAllOf(section: Section): boolean {
  const names = section.names()
  return names.includes('all-of') || names.includes('levels') || section.written('algorithm') === 'all-of'
}

/** The policies listed under `all-of`, or named under `levels`, as one policy; `algorithm` may be left out, since both imply it. */
export function readAllOf(section: Section, name: string, nameFault: NameFault): Rule {
  if (section.has('algorithm')) section.oneOf('algorithm', ['all-of'])
  const soft: SoftByPart = new Map()
  const policies = section.has('levels') ? readLevels(section, soft) : readList(section, soft)
  return {
    soft,
    policy: wholeOf(policies.length === 0 ? [STAND_IN] : policies.slice(0, MAX_PARTS), name, nameFault),
    belongs: (option) => (OF_A_PART.has(option) ? 'is for a policy in all-of or levels: write it there' : undefined),
  }
}

function readList(section: Section, soft: SoftByPart): readonly Policy[] {
  section.require('all-of', ': list the policies that all have to agree')
  const list = section.list('all-of', 'policies')
  const parts = list ?? []
  if (list !== undefined) checkNumber(section, 'all-of', parts.length)
  const names = new Map<string, string>()
  return parts.flatMap((part) => readPart(part, names, soft) ?? [])
}

/** Each policy under its name, by which requests give its key. */
function readLevels(section: Section, soft: SoftByPart): readonly Policy[] {
  if (section.has('all-of')) section.nameFault('all-of', 'cannot stand beside levels: name all policies there')
  const levels = section.section('levels')
  const names = levels.names()
  if (levels.isMapping) checkNumber(section, 'levels', names.length)
  return names.flatMap((name) => {
    if (/^\d+$/.test(name)) levels.nameFault(name, 'must not be a number, as an object would have it first')
    const level = levels.section(name)
    if (isAllOf(level)) {
      level.fault(level.has('levels') ? 'levels' : 'all-of', 'cannot stand in a level: name all policies beside each other')
      return []
    }
    const rule = readRule(level, ALGORITHM_NAMES, name, (reason) => levels.nameFault(name, `name: ${reason}`))
    addSoft(level, rule.policy, soft)
    level.done((option) => (OF_THE_WHOLE.has(option) ? 'is for the whole policy: write it beside levels' : rule.belongs(option)))
    return rule.policy ?? []
  })
}

function checkNumber(section: Section, option: string, policies: number): void {
  if (policies < 1 || policies > MAX_PARTS) section.fault(option, `must have 1 to ${MAX_PARTS} policies, not ${policies}`)
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

function addSoft(part: Section, policy: Policy | undefined, soft: SoftByPart): void {
  const own = SOFT.soft.read(part)
  if (policy !== undefined && own !== undefined) soft.set(policy.name, own)
}

/** A part, whose name is unique: `names` has the names of the parts before it, with their places. */
function readPart(part: Section, names: Map<string, string>, soft: SoftByPart): Policy | undefined {
  if (isAllOf(part)) {
    part.fault('all-of', 'cannot stand in another all-of: list all policies in one')
    return undefined
  }
  const rule = readRule(part, ALGORITHM_NAMES, part.text('name', 'burst'), (reason) => part.fault('name', reason))
  addSoft(part, rule.policy, soft)
  part.done((option) => (OF_THE_WHOLE.has(option) ? 'is for the whole policy: write it beside all-of' : rule.belongs(option)))
  const { policy } = rule
  if (policy === undefined) return undefined
  const other = names.get(policy.name)
  if (other !== undefined) part.fault('name', `${JSON.stringify(policy.name)} is the name of ${other} already: give this one another`)
  names.set(policy.name, part.path)
  return policy
}
