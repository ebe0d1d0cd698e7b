import { concurrency, fixedWindow, gcra, type Policy, slidingLog, slidingWindow, tokenBucket } from 'sluicegate'
import { listed } from './section.js'

/** An algorithm that a file can name. */
interface Offer {
  /** Makes the policy from the library's own options; throws `PolicyError` where they are wrong. */
  readonly make: (options: never) => Policy
  /** Its options in the file beside `algorithm`: the library's, in kebab-case. */
  readonly options: readonly RuleOption[]
}

export type RuleOption = 'limit' | 'window' | 'burst' | 'time-zone' | 'ttl'
export type AlgorithmName = 'token-bucket' | 'gcra' | 'fixed-window' | 'sliding-window' | 'sliding-log' | 'concurrency'

export const OFFERS: Readonly<Record<AlgorithmName, Offer>> = {
  'token-bucket': { make: tokenBucket, options: ['limit', 'window', 'burst'] },
  gcra: { make: gcra, options: ['limit', 'window', 'burst'] },
  'fixed-window': { make: fixedWindow, options: ['limit', 'window', 'time-zone'] },
  'sliding-window': { make: slidingWindow, options: ['limit', 'window'] },
  'sliding-log': { make: slidingLog, options: ['limit', 'window'] },
  concurrency: { make: concurrency, options: ['limit', 'ttl'] },
}

export const ALGORITHM_NAMES = Object.keys(OFFERS) as AlgorithmName[]
export const RULE_OPTIONS: readonly RuleOption[] = [...new Set(Object.values(OFFERS).flatMap(({ options }) => options))]
export const CALENDAR_UNITS: readonly string[] = ['day', 'week', 'month', 'year']

/** `token-bucket and gcra`: the algorithms that have this option; undefined when none has. */
export function algorithmsWith(option: string): string | undefined {
  const names = ALGORITHM_NAMES.filter((name) => OFFERS[name].options.includes(option as RuleOption))
  return names.length === 0 ? undefined : listed(names, 'and')
}
