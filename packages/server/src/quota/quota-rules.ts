import { createHash } from 'node:crypto'
import type { EnvoyDomain } from 'sluicegate-config/envoy/envoy-domain.js'
import type { RuleLevel } from 'sluicegate-config/envoy/rule.js'
import { isSplittable, type QuotaRule } from 'sluicegate-config/quotas.js'
import type { Engine, Policy } from '../engine/engine.js'
import { type Entry, findLimit, keyOf, ruleOf } from '../envoy/find-rule.js'
import { matchesParts } from '../envoy/limit-settings.js'
import type { BudgetNumbers } from './quota-budget.js'

/** What a bucket may use: a part of a budget, everything, or nothing. */
export type QuotaLimit = BudgetNumbers | 'allow' | 'deny'

/** The budget that a bucket has a part of. */
export interface FoundQuota {
  /** Equal for buckets that share a budget. */
  readonly key: string
  /** For metrics: the policy, or the path of the rule. */
  readonly policy: string
  /** As configured now; undefined when the policy is gone, or has no rate any more. */
  limit(): QuotaLimit | undefined
}

/** What of the configuration decides about quotas. */
export interface QuotaConfig {
  /** Undefined: the entry `name` of a bucket id names the policy. */
  readonly rules: readonly QuotaRule[] | undefined
  readonly domains: readonly EnvoyDomain[]
}

interface ReadyRule {
  readonly id: string
  readonly rule: QuotaRule
  readonly patterns: readonly (readonly [key: string, parts: readonly string[]])[]
}

/** The entry that names a policy, where no rules are configured. */
const NAME = 'name'

/** Finds the budget of a bucket id. */
export class QuotaRules {
  readonly #engine: Engine
  readonly #rules: readonly ReadyRule[]
  readonly #byName: boolean
  readonly #domains: ReadonlyMap<string, EnvoyDomain>
  readonly #isShadow: boolean

  /** @param isShadow whether the rules of Envoy's files deny nothing. */
  constructor(engine: Engine, { rules, domains }: QuotaConfig, isShadow: boolean) {
    this.#engine = engine
    this.#byName = rules === undefined
    this.#rules = (rules ?? []).map((rule) => ({
      rule,
      id: JSON.stringify([rule.policy, rule.domain ?? null, ...[...rule.match].flat(), rule.key ?? null]),
      patterns: Array.from(rule.match, ([key, pattern]) => [key, pattern.split('*')] as const),
    }))
    this.#domains = new Map(domains.map((each) => [each.domain, each]))
    this.#isShadow = isShadow
  }

  /** The first rule that matches, then the file of the domain, then the policy by its name; undefined without any. */
  find(domain: string, entries: readonly Entry[]): FoundQuota | undefined {
    for (const ready of this.#rules) if (matches(ready, domain, entries)) return this.#byRule(ready, domain, entries)
    const file = this.#domains.get(domain)
    if (file !== undefined) return this.#byFile(file, entries)
    return this.#byName ? this.#named(domain, entries) : undefined
  }

  #byRule({ id, rule, patterns }: ReadyRule, domain: string, entries: readonly Entry[]): FoundQuota | undefined {
    const keys =
      rule.key ?? entries.map(({ key }) => key).filter((key) => patterns.every(([name, parts]) => name !== key || parts.length > 1))
    const values = keys.map((name) => entries.find(({ key }) => key === name)?.value)
    if (!values.every((value) => value !== undefined)) return undefined
    const keyText = keyOf(values, digest)
    return {
      key: JSON.stringify(['rule', id, domain, keys, keyText]),
      policy: rule.policy,
      limit: () => this.#numbersOf(rule.policy, keyText, 1, rule.burst),
    }
  }

  #named(domain: string, entries: readonly Entry[]): FoundQuota | undefined {
    const policy = entries.find(({ key }) => key === NAME)?.value
    if (policy === undefined || this.#engine.policy(policy) === undefined) return undefined
    const others = entries.filter(({ key }) => key !== NAME)
    const values = others.map(({ value }) => value)
    const keyText = keyOf(values, digest)
    return {
      key: JSON.stringify(['name', policy, domain, others.map(({ key }) => key), keyText]),
      policy,
      limit: () => this.#numbersOf(policy, keyText, 1, undefined),
    }
  }

  #byFile({ domain, rules }: EnvoyDomain, entries: readonly Entry[]): FoundQuota | undefined {
    const ordered = leading(rules, entries)
    const found = ordered && findLimit(domain, rules, ordered, digest)
    if (found === undefined) return undefined
    const { limit, key } = found
    return {
      key: JSON.stringify(['file', limit.path, key]),
      policy: limit.path,
      limit: () => {
        if (limit.unlimited || limit.shadowMode || this.#isShadow) return 'allow'
        return limit.policy === undefined ? 'deny' : this.#numbersOf(limit.policy, key, limit.cost, undefined)
      },
    }
  }

  #numbersOf(name: string, key: string, cost: number, burst: number | undefined): QuotaLimit | undefined {
    const served = this.#engine.policy(name)
    return served === undefined || !isSplittable(served.config) ? undefined : budgetNumbers(served.policyOf(key), cost, burst)
  }
}

function matches({ rule, patterns }: ReadyRule, domain: string, entries: readonly Entry[]): boolean {
  if (rule.domain !== undefined && rule.domain !== domain) return false
  return patterns.every(([name, parts]) => entries.some(({ key, value }) => key === name && matchesParts(parts, value)))
}

/**
 * The entries in an order that leads through the levels to a limit: a bucket id has none of its own. Each rule is reached in one way, so that the search
 * is bounded by the size of the file.
 */
function leading(level: RuleLevel, entries: readonly Entry[]): Entry[] | undefined {
  for (const entry of entries) {
    const rules = level.get(entry.key)
    const rule = rules && ruleOf(rules, entry.value)
    if (rule === undefined) continue
    const others = entries.filter((each) => each !== entry)
    if (others.length === 0) {
      if (rule.limit !== undefined) return [entry]
      continue
    }
    const rest = leading(rule.children, others)
    if (rest !== undefined) return [entry, ...rest]
  }
  return undefined
}

function digest(text: string): string {
  return createHash('sha256').update(text).digest('base64')
}

/** The part of a window's limit that may be admitted at once, where no burst is configured. */
const WINDOW_BURST = 1 / 10

/**
 * The budget of a policy for requests that take `cost` tokens. A window becomes a rate and a burst that are its limit together, so that no window of
 * that length has more.
 *
 * @param windowBurst the tokens of a window that may be admitted at once; a tenth by default.
 */
export function budgetNumbers({ algorithm, limit, windowMs, burst }: Policy, cost = 1, windowBurst?: number): BudgetNumbers {
  const perSecond = 1_000 / windowMs / cost
  if (algorithm === 'token-bucket' || algorithm === 'gcra')
    return { ratePerSecond: limit * perSecond, burst: Math.max(1, Math.floor(burst / cost)) }
  // A limit of 1 has nothing to split.
  const atOnce = limit === 1 ? 1 : Math.min(limit - 1, windowBurst ?? Math.max(1, Math.floor(limit * WINDOW_BURST)))
  return { ratePerSecond: (limit === 1 ? 1 : limit - atOnce) * perSecond, burst: Math.max(1, Math.floor(atOnce / cost)) }
}
