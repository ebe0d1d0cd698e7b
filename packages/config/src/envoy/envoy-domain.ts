import type { PolicyConfig } from '../policy-config.js'
import type { RuleLevel } from './rule.js'

/** A file of Envoy's ratelimit service: the rules of one domain, and the policies behind their limits. */
export interface EnvoyDomain {
  readonly domain: string
  readonly rules: RuleLevel
  /** The key of the entry that names the class of a request instead of leading to a rule. */
  readonly priorityKey: string | undefined
  readonly policies: readonly PolicyConfig[]
}
