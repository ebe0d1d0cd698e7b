/** Units of limits, with their numbers in Envoy's messages and their length. A month has 30 days and a year 365, as in Envoy's ratelimit service. */
export const UNITS = {
  second: { number: 1, windowMs: 1_000 },
  minute: { number: 2, windowMs: 60_000 },
  hour: { number: 3, windowMs: 3_600_000 },
  day: { number: 4, windowMs: 86_400_000 },
  week: { number: 7, windowMs: 7 * 86_400_000 },
  month: { number: 5, windowMs: 30 * 86_400_000 },
  year: { number: 6, windowMs: 365 * 86_400_000 },
} as const

export type UnitName = keyof typeof UNITS

/** The limit of a rule. */
export interface RuleLimit {
  /** The names and values that lead to it, `domain.key_value.key`: its name in metrics. */
  readonly path: string
  /** The policy that decides, by name. Undefined: `unlimited`, or a limit of 0, which denies every hit. */
  readonly policy: string | undefined
  readonly unlimited: boolean
  readonly requestsPerUnit: number
  /** Undefined for a window that is no unit of Envoy. */
  readonly unit: UnitName | undefined
  /** For `replaces` of other limits, and in responses; empty without one. */
  readonly name: string
  /** Names of limits that do not apply to a request that this one applies to. */
  readonly replaces: readonly string[]
  /** Counts and reports as any other, and never denies. */
  readonly shadowMode: boolean
  /** Denies a request only if all limits in quota mode do. */
  readonly quotaMode: boolean
  readonly detailedMetric: boolean
  /** Tokens that a hit takes. */
  readonly cost: number
  /** Whether hits that are denied are charged, as Envoy's ratelimit service does. */
  readonly chargeDenied: boolean
  /** For the dynamic metadata of responses. */
  readonly metadata: Readonly<Record<string, unknown>> | undefined
}

/** One descriptor of the file: a key, a value or a pattern of values, or neither, and what follows it. */
export interface Rule {
  readonly limit: RuleLimit | undefined
  readonly children: RuleLevel
  /** The value as written, of a rule whose values are a pattern. */
  readonly pattern: string | undefined
  /** All values that match the pattern share one budget. */
  readonly shareThreshold: boolean
  /** Metrics show the value instead of the pattern, or of the key alone. */
  readonly valueToMetric: boolean
  /** Bits of IPv6 by which a value that is an address is counted. */
  readonly ipv6Subnet: number
}

/** Descriptors that stand beside each other, by key. */
export type RuleLevel = ReadonlyMap<string, RulesOfKey>

/** Rules of one key. A value is looked for among `values`, then `patterns` in their order; `any` is for all others. */
export interface RulesOfKey {
  readonly values: ReadonlyMap<string, Rule>
  readonly patterns: readonly PatternRule[]
  readonly any: Rule | undefined
}

/** A rule for values that match a pattern. */
export interface PatternRule {
  /** What stands between the `*` of the pattern. */
  readonly parts: readonly string[]
  readonly rule: Rule
}
