import type { Rule, RuleLevel, RuleLimit, RulesOfKey } from 'sluicegate-config/envoy/rule.js'
import { clientKey } from '../access.js'
import { matchesParts } from './limit-settings.js'

/** One entry of a descriptor. */
export interface Entry {
  readonly key: string
  readonly value: string
}

/** The limit that applies to a descriptor. */
export interface FoundLimit {
  readonly limit: RuleLimit
  /** Who is limited: the values that the file leaves open, in an encoding in which different values never meet. */
  readonly key: string
  /** The name under which metrics count the hits of this descriptor. */
  readonly metric: string
}

/** A library key has at most 1,024 UTF-16 units; longer ones become a digest. */
const MAX_KEY_LENGTH = 1_024

/**
 * The limit for `entries`, which lead through the levels one by one; undefined where the file has none for exactly these. At each level
 * the rule of the value comes first, then the first pattern that matches, then the rule of the key alone. The search does not go back.
 *
 * @param digest makes a short text of a long one, of which equal texts are the same.
 */
export function findLimit(
  domain: string,
  root: RuleLevel,
  entries: readonly Entry[],
  digest: (text: string) => string,
): FoundLimit | undefined {
  const open: string[] = []
  let level = root
  let valuesInMetric = false
  for (let i = 0; i < entries.length; i++) {
    const { key, value } = entries[i] as Entry
    const rules = level.get(key)
    if (rules === undefined) return undefined
    const exact = rules.values.get(value)
    const rule = exact ?? ruleForOthers(rules, value)
    if (rule === undefined) return undefined
    if (exact === undefined) {
      // A client counts as its network, whichever address and port it has now.
      if (!isShared(rule)) open.push(clientKey(value, rule.ipv6Subnet))
      valuesInMetric ||= rule.valueToMetric
    }
    if (i === entries.length - 1) {
      const { limit } = rule
      if (limit === undefined) return undefined
      const named = valuesInMetric || limit.detailedMetric
      return { limit, key: keyOf(open, digest), metric: named ? metricOf(domain, root, entries, limit.detailedMetric) : limit.path }
    }
    level = rule.children
  }
  return undefined
}

/** The rule for a value of a key; undefined where there is none. */
export function ruleOf(rules: RulesOfKey, value: string): Rule | undefined {
  return rules.values.get(value) ?? ruleForOthers(rules, value)
}

function ruleForOthers({ patterns, any }: RulesOfKey, value: string): Rule | undefined {
  for (const { parts, rule } of patterns) if (matchesParts(parts, value)) return rule
  return any
}

function isShared({ shareThreshold, pattern }: Rule): boolean {
  return shareThreshold && pattern !== undefined
}

/** `domain.key_value.key`: each value where `detailed`, else those that the file asks for; a pattern where a budget is shared. */
function metricOf(domain: string, root: RuleLevel, entries: readonly Entry[], detailed: boolean): string {
  let name = domain
  let level = root
  for (const { key, value } of entries) {
    const rules = level.get(key) as RulesOfKey
    const exact = rules.values.get(value)
    const rule = exact ?? (ruleForOthers(rules, value) as Rule)
    const shown =
      exact !== undefined || ((detailed || rule.valueToMetric) && !isShared(rule)) ? shownValue(value, exact, rule) : (rule.pattern ?? '')
    name += shown === '' ? `.${key}` : `.${key}_${shown}`
    level = rule.children
  }
  return name
}

function shownValue(value: string, exact: Rule | undefined, { ipv6Subnet }: Rule): string {
  return exact === undefined ? clientKey(value, ipv6Subnet) : value
}

/** Joins values so that different lists give different keys, and a single value reads as itself. */
export function keyOf(values: readonly string[], digest: (text: string) => string): string {
  let key = ''
  for (let i = 0; i < values.length; i++) {
    const value = values[i] as string
    const escaped = value.includes('\\') || value.includes('|') ? value.replaceAll('\\', '\\\\').replaceAll('|', '\\|') : value
    key = i === 0 ? escaped : `${key}|${escaped}`
  }
  // The escaping above gives neither of these.
  if (key === '') return values.length === 0 ? '\\0' : '\\e'
  return key.length > MAX_KEY_LENGTH ? `\\d${digest(key)}` : key
}
