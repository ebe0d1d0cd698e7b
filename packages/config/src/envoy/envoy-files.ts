import type { PolicyConfig } from '../policy-config.js'
import type { Section } from '../section.js'
import type { EnvoyDomain } from './envoy-domain.js'
import { readLimit } from './read-limit.js'
import { hintFor, type Reading } from './reading.js'
import type { PatternRule, Rule } from './rule.js'

/** Requests with more entries in a descriptor match no rule, so deeper rules are a mistake. */
const MAX_DEPTH = 32
/** Each rule with a limit has its own table. */
const MAX_LIMITS = 5_000
const MAX_RULES = 50_000

/** A domain while its files are read. */
interface OpenDomain {
  readonly rules: Map<string, OpenRules>
  readonly policies: PolicyConfig[]
  priorityKey: string | undefined
  /** The file that it was in first. */
  readonly file: string
}

/** Reads configuration files of Envoy's ratelimit service, each with the rules of one domain. */
export class EnvoyFiles {
  readonly #names: Set<string>
  readonly #mergesDomains: boolean
  readonly #domains = new Map<string, OpenDomain>()

  /**
   * @param names names of policies that exist already; those of the rules are added.
   * @param mergesDomains whether files may share a domain (`MERGE_DOMAIN_CONFIG`); otherwise that is a fault.
   */
  constructor(names: Set<string> = new Set(), mergesDomains = false) {
    this.#names = names
    this.#mergesDomains = mergesDomains
  }

  /** All domains that were read, in the order of their files. */
  get domains(): EnvoyDomain[] {
    return Array.from(this.#domains, ([domain, { rules, policies, priorityKey }]) => ({ domain, rules, policies, priorityKey }))
  }

  /** Reads the file under `root`, which has `domain` and `descriptors`. Faults are recorded in the section; after one the result is meaningless. */
  read(root: Section): void {
    root.require('domain', ': requests name it')
    const domain = root.label('domain', 'api') ?? ''
    if (root.written('domain') === '') root.fault('domain', 'must not be empty')
    const before = this.#domains.get(domain)
    if (before !== undefined && !this.#mergesDomains)
      root.fault('domain', `${JSON.stringify(domain)} is in ${before.file} already: keep one file, or set MERGE_DOMAIN_CONFIG=true`)
    const open = before ?? { rules: new Map(), policies: [], priorityKey: undefined, file: root.file }
    this.#domains.set(domain, open)
    open.priorityKey = (root.isGiven('priority_key') ? root.label('priority_key', 'priority') : undefined) ?? open.priorityKey
    const chargeDenied = root.flag('charge_denied') ?? false
    const reading: Reading = { policies: open.policies, names: this.#names, chargeDenied, rules: 0 }
    readLevel(root, open.rules, reading, domain, 1)
    root.done(hintFor)
    const limits = open.policies.length
    if (limits > MAX_LIMITS) root.fault('descriptors', `must have at most ${MAX_LIMITS} limits, not ${limits}`)
  }
}

interface OpenRules {
  values: Map<string, Rule>
  patterns: PatternRule[]
  any: Rule | undefined
}

/** Adds the list `descriptors` of a section to `level`. */
function readLevel(section: Section, level: Map<string, OpenRules>, reading: Reading, path: string, depth: number): void {
  if (!section.isGiven('descriptors')) return
  const list = section.list('descriptors', 'descriptors, each with a key') ?? []
  if (list.length > 0 && depth > MAX_DEPTH) {
    section.fault('descriptors', `must not be nested deeper than ${MAX_DEPTH}`)
    return
  }
  for (const descriptor of list) {
    if (++reading.rules > MAX_RULES) {
      section.fault('descriptors', `must have at most ${MAX_RULES} descriptors in all`)
      return
    }
    if (descriptor.isMapping) readDescriptor(descriptor, level, reading, path, depth)
  }
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
  const ipv6Subnet = section.integer('ipv6_subnet', 32, 128) ?? 56
  const limit = section.isGiven('rate_limit')
    ? readLimit(section.section('rate_limit'), reading, path, flags, hasOpenValue(value))
    : undefined
  const children = new Map<string, OpenRules>()
  readLevel(section, children, reading, path, depth + 1)
  section.done(hintFor)
  if (key === '') return
  const rule: Rule = { limit, children, pattern: isPattern ? value : undefined, shareThreshold, valueToMetric, ipv6Subnet }
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
  if (metadata === undefined) return undefined
  if (typeof metadata === 'object' && metadata !== null && !Array.isArray(metadata)) return metadata as Readonly<Record<string, unknown>>
  section.fault('metadata', 'must be a mapping')
  return undefined
}
