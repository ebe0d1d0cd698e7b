import type { PatternRule, Rule, RuleLevel } from '../../envoy/rule.js'
import type { PolicyConfig } from '../config.js'
import type { Section } from '../section.js'
import type { EnvoyDomain } from './envoy-domain.js'
import { readLimit } from './read-limit.js'

/** Requests with more entries in a descriptor match no rule, so deeper rules are a mistake. */
const MAX_DEPTH = 32
/** Each rule with a limit has a table of its own. */
const MAX_LIMITS = 5_000
const MAX_RULES = 50_000

/** What the rules of a file collect while they are read. */
export interface Reading {
  readonly domain: string
  readonly policies: PolicyConfig[]
  readonly names: Set<string>
  /** Whether limits charge denied hits, where they do not say so themselves. */
  readonly chargeDenied: boolean
  rules: number
}

/**
 * The configuration file of Envoy's ratelimit service under `root`, whose place in the file has `domain` and `descriptors`. Faults are
 * recorded in the section; after one the result is meaningless.
 *
 * @param names names of policies that exist already, in other files.
 */
export function readEnvoy(root: Section, names: Set<string> = new Set()): EnvoyDomain {
  root.require('domain', ': requests name it')
  const domain = root.label('domain', 'edge') ?? ''
  if (root.has('domain') && domain === '' && root.written('domain') === '') root.fault('domain', 'must not be empty')
  const reading: Reading = { domain, policies: [], names, chargeDenied: root.flag('charge_denied') ?? false, rules: 0 }
  const rules = readLevel(root, reading, domain, 1)
  root.done(hintFor)
  if (reading.policies.length > MAX_LIMITS)
    root.fault('descriptors', `must have at most ${MAX_LIMITS} limits, not ${reading.policies.length}`)
  return { domain, rules, policies: reading.policies }
}

interface OpenRules {
  values: Map<string, Rule>
  patterns: PatternRule[]
  any: Rule | undefined
}

/** The list `descriptors` of a section, by key. */
function readLevel(section: Section, reading: Reading, path: string, depth: number): RuleLevel {
  const level = new Map<string, OpenRules>()
  if (!section.isGiven('descriptors')) return level
  const list = section.list('descriptors', 'descriptors, each with a key') ?? []
  if (list.length > 0 && depth > MAX_DEPTH) {
    section.fault('descriptors', `must not be nested deeper than ${MAX_DEPTH}`)
    return level
  }
  for (const descriptor of list) {
    if (++reading.rules > MAX_RULES) {
      section.fault('descriptors', `must have at most ${MAX_RULES} descriptors in all`)
      return level
    }
    readDescriptor(descriptor, level, reading, path, depth)
  }
  return level
}

function readDescriptor(section: Section, level: Map<string, OpenRules>, reading: Reading, parent: string, depth: number): void {
  section.require('key', ': the name of the entry that requests carry')
  const key = section.label('key', 'remote_address') ?? ''
  if (section.written('key') === '') section.fault('key', 'must not be empty')
  const value = (section.isGiven('value') ? section.label('value', 'api') : undefined) ?? ''
  const path = `${parent}.${value === '' ? key : `${key}_${value}`}`
  const isPattern = value.includes('*')
  const shareThreshold = section.flag('share_threshold') ?? false
  if (shareThreshold && !isPattern) section.fault('share_threshold', 'is for a value with a *, whose matches share one budget')
  const flags = {
    shadowMode: section.flag('shadow_mode') ?? false,
    quotaMode: section.flag('quota_mode') ?? false,
    detailedMetric: section.flag('detailed_metric') ?? false,
    metadata: readMetadata(section),
  }
  const valueToMetric = section.flag('value_to_metric') ?? false
  const limit = section.isGiven('rate_limit')
    ? readLimit(section.section('rate_limit'), reading, path, flags, hasOpenValue(value))
    : undefined
  const children = readLevel(section, reading, path, depth + 1)
  section.done(hintFor)
  const rule: Rule = { limit, children, pattern: isPattern ? value : undefined, shareThreshold, valueToMetric }
  const rules: OpenRules = level.get(key) ?? { values: new Map(), patterns: [], any: undefined }
  level.set(key, rules)
  if (isGiven(rules, value))
    section.fault(value === '' ? 'key' : 'value', `${JSON.stringify(path)} is there already: a descriptor stands once in its list`)
  else if (isPattern) rules.patterns.push({ parts: value.split('*'), rule })
  else if (value === '') rules.any = rule
  else rules.values.set(value, rule)
}

function isGiven({ values, patterns, any }: OpenRules, value: string): boolean {
  if (value === '') return any !== undefined
  return values.has(value) || patterns.some(({ rule }) => rule.pattern === value)
}

function hasOpenValue(value: string): boolean {
  return value === '' || value.includes('*')
}

function readMetadata(section: Section): Readonly<Record<string, unknown>> | undefined {
  if (!section.isGiven('metadata')) return undefined
  const metadata = section.plain('metadata')
  if (typeof metadata === 'object' && metadata !== null && !Array.isArray(metadata)) return metadata as Readonly<Record<string, unknown>>
  section.fault('metadata', 'must be a mapping')
  return undefined
}

const OF_THE_LIMIT = new Set(['unit', 'requests_per_unit', 'unlimited', 'name', 'replaces', 'algorithm', 'window', 'burst', 'cost'])
const OF_THE_DESCRIPTOR = new Set([
  'shadow_mode',
  'quota_mode',
  'detailed_metric',
  'value_to_metric',
  'share_threshold',
  'metadata',
  'descriptors',
])

/** Where an option belongs that stands in the wrong place; Envoy's ratelimit service ignores it there. */
export function hintFor(option: string): string | undefined {
  if (OF_THE_LIMIT.has(option)) return 'is for rate_limit: write it there'
  return OF_THE_DESCRIPTOR.has(option) ? 'is for the descriptor: write it beside key' : undefined
}
