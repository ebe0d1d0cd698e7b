import type { Config } from './config.js'
import type { EnvoyDomain } from './envoy/envoy-domain.js'
import type { PatternRule, Rule, RuleLevel } from './envoy/rule.js'
import type { PolicyConfig } from './policy-config.js'
import { inGroups, TierData, type TierDataPart } from './tiers/tier-data.js'
import { type KnownTierFile, knowTierFile } from './tiers/tier-file.js'
import { NO_DATA, type TierParts, Tiers } from './tiers/tiers.js'

/** Policies or rules in a part: another thread reads one in about a millisecond. */
const ITEMS_OF_PART = 50

/** Keys of tiers as a number: that of data which parts before have brought. */
interface SentTiers extends Omit<TierParts, 'keys' | 'fileData'> {
  readonly keys: number
  readonly fileData: number
}

type SentPolicy = Omit<PolicyConfig, 'tiers'> & { readonly tiers?: SentTiers }

/** A rule below the one of that number, without those below it; -1: of the domain itself. */
interface SentRule {
  readonly parent: number
  readonly key: string
  /** Undefined: for all other values. */
  readonly value: string | undefined
  readonly rule: Omit<Rule, 'children'>
}

/** A piece of a configuration on its way to another thread, which takes it in about a millisecond. */
export type ConfigPart =
  | { readonly kind: 'head'; readonly settings: Omit<Config, 'policies' | 'domains'> }
  | { readonly kind: 'domain'; readonly domain: Pick<EnvoyDomain, 'domain' | 'priorityKey'> }
  /** `file`: the receiver knows the file, as it is; or the first part of other data. */
  | { readonly kind: 'data'; readonly file?: string | undefined; readonly signature?: string | undefined; readonly isKnown: boolean }
  | { readonly kind: 'keys'; readonly part: TierDataPart }
  /** Of the last domain; before the first, of the configuration itself. */
  | { readonly kind: 'policies'; readonly policies: readonly SentPolicy[] }
  | { readonly kind: 'rules'; readonly rules: readonly SentRule[] }

/** What a sender knows of the readings of files that the receiver has. */
export type KnownFiles = ReadonlyMap<TierData, { readonly file: string; readonly signature: string; readonly isKnown: boolean }>

/** The parts of a configuration, in their order. */
export function* partsOf({ policies, domains, ...settings }: Config, files: KnownFiles): Generator<ConfigPart> {
  yield { kind: 'head', settings }
  const sent = new Map<TierData, number>()
  yield* partsOfPolicies(policies, files, sent)
  for (const { domain, priorityKey, rules, policies } of domains) {
    yield { kind: 'domain', domain: { domain, priorityKey } }
    yield* partsOfPolicies(policies, files, sent)
    for (const group of inGroups(flatRules(rules), ITEMS_OF_PART)) yield { kind: 'rules', rules: group }
  }
}

/** The parts of data files alone. */
export function* partsOfData(all: Iterable<TierData>, files: KnownFiles): Generator<ConfigPart> {
  const sent = new Map<TierData, number>()
  for (const data of all) yield* partsOfOne(data, files, sent)
}

function* partsOfPolicies(policies: readonly PolicyConfig[], files: KnownFiles, sent: Map<TierData, number>): Generator<ConfigPart> {
  for (const group of inGroups(policies, ITEMS_OF_PART)) {
    const written: SentPolicy[] = []
    for (const { tiers, ...policy } of group) {
      if (tiers === undefined) {
        written.push(policy)
        continue
      }
      const { keys, fileData, ...parts } = tiers.parts
      for (const data of [keys, fileData]) yield* partsOfOne(data, files, sent)
      written.push({ ...policy, tiers: { ...parts, keys: sent.get(keys) ?? -1, fileData: sent.get(fileData) ?? -1 } })
    }
    yield { kind: 'policies', policies: written }
  }
}

function* partsOfOne(data: TierData, files: KnownFiles, sent: Map<TierData, number>): Generator<ConfigPart> {
  if (sent.has(data) || data === NO_DATA) return
  sent.set(data, sent.size)
  const { file, signature, isKnown = false } = files.get(data) ?? {}
  yield { kind: 'data', file, signature, isKnown }
  if (!isKnown) for (const part of data.parts()) yield { kind: 'keys', part }
}

/** All rules, each after the one that it is below. */
function* flatRules(level: RuleLevel, parent = -1, count = { rules: 0 }): Generator<SentRule> {
  for (const [key, { values, patterns, any }] of level) {
    const all = [
      ...values,
      ...patterns.map(({ rule }) => [rule.pattern, rule] as const),
      ...(any === undefined ? [] : [[undefined, any] as const]),
    ]
    for (const [value, { children, ...rule }] of all) {
      const number = count.rules++
      yield { parent, key, value, rule }
      yield* flatRules(children, number, count)
    }
  }
}

/** A configuration that is made of the parts that another thread has sent. */
export class ConfigAssembly {
  #settings: Omit<Config, 'policies' | 'domains'> | undefined
  readonly #policies: PolicyConfig[] = []
  readonly #domains: { domain: string; priorityKey: string | undefined; rules: Map<string, OpenRules>; policies: PolicyConfig[] }[] = []
  readonly #levels: Map<string, OpenRules>[] = []
  readonly #data: TierData[] = []
  readonly #files = new Map<string, KnownTierFile>()
  readonly #known: ReadonlyMap<string, KnownTierFile>

  /** @param known the readings of files that the sender was told of. */
  constructor(known: ReadonlyMap<string, KnownTierFile>) {
    this.#known = known
  }

  add(part: ConfigPart): void {
    switch (part.kind) {
      case 'head':
        this.#settings = part.settings
        return
      case 'domain':
        this.#domains.push({ ...part.domain, rules: new Map(), policies: [] })
        this.#levels.length = 0
        return
      case 'data':
        this.#addData(part)
        return
      case 'keys':
        this.#data.at(-1)?.take(part.part)
        return
      case 'policies':
        ;(this.#domains.at(-1)?.policies ?? this.#policies).push(...part.policies.map((policy) => this.#received(policy)))
        return
      case 'rules':
        for (const rule of part.rules) this.#addRule(rule)
    }
  }

  /** The whole, when all parts are there. */
  config(): Config {
    this.data()
    return { ...(this.#settings as Omit<Config, 'policies' | 'domains'>), policies: this.#policies, domains: this.#domains }
  }

  /** The data files that were sent or are known, by name. They are known from now on. */
  data(): ReadonlyMap<string, TierData> {
    for (const [file, known] of this.#files) knowTierFile(file, known)
    return new Map(Array.from(this.#files, ([file, { data }]) => [file, data]))
  }

  #addData({ file, signature, isKnown }: ConfigPart & { readonly kind: 'data' }): void {
    const known = file === undefined || !isKnown ? undefined : this.#known.get(file)
    const data = known?.data ?? new TierData()
    this.#data.push(data)
    if (file !== undefined && signature !== undefined) this.#files.set(file, { signature, data })
  }

  #received({ tiers, ...policy }: SentPolicy): PolicyConfig {
    freeze(policy.policy)
    if (tiers === undefined) return policy
    const data = (number: number): TierData => this.#data[number] ?? NO_DATA
    freeze(tiers.base)
    for (const each of tiers.named.values()) freeze(each)
    return { ...policy, tiers: new Tiers({ ...tiers, keys: data(tiers.keys), fileData: data(tiers.fileData) }) }
  }

  #addRule({ parent, key, value, rule }: SentRule): void {
    const level = this.#levels[parent] ?? this.#domains.at(-1)?.rules
    const children = new Map<string, OpenRules>()
    this.#levels.push(children)
    if (level === undefined) return
    const rules: OpenRules = level.get(key) ?? { values: new Map(), patterns: [], any: undefined }
    level.set(key, rules)
    const made: Rule = { ...rule, children }
    if (value === undefined) rules.any = made
    else if (rule.pattern === undefined) rules.values.set(value, made)
    else rules.patterns.push({ parts: rule.pattern.split('*'), rule: made })
  }
}

interface OpenRules {
  readonly values: Map<string, Rule>
  readonly patterns: PatternRule[]
  any: Rule | undefined
}

/** As the library makes policies: what another thread sends is open. */
function freeze(value: unknown): void {
  if (typeof value !== 'object' || value === null) return
  for (const each of Object.values(value)) freeze(each)
  Object.freeze(value)
}
