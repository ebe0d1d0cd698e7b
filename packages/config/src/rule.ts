import type { Policy } from 'sluicegate'
import { ALGORITHM_NAMES, type AlgorithmName, algorithmsWith, OFFERS, RULE_OPTIONS, type RuleOption } from './algorithms.js'
import { judgedPolicy, type NameFault, type WrittenRule } from './judged-policy.js'
import type { Section } from './section.js'
import { nearest } from './spelling.js'

const REQUIRED: ReadonlySet<string> = new Set(['limit', 'window'])
const DURATIONS = '250ms, 10s, 1m, 24h or 30d'
const READERS: Readonly<Record<RuleOption, (section: Section, algorithm: AlgorithmName | undefined) => unknown>> = {
  limit: (section) => section.number('limit'),
  // A bare number would be milliseconds to the library and seconds to most readers.
  window: (section, algorithm) =>
    section.text('window', algorithm === 'fixed-window' ? `${DURATIONS}, or day, week, month or year` : DURATIONS),
  burst: (section) => section.number('burst'),
  'time-zone': (section) => section.text('time-zone', 'Europe/Rome'),
  counters: (section) => section.oneOf('counters', ['exact', 'compact']),
  'slot-bytes': (section) => section.oneOf('slot-bytes', [4, 8]),
  ttl: (section) => section.text('ttl', '30s'),
}

/** A section read before {@link Section.done}. After a fault its policy is meaningless, because the file is refused. */
export interface Rule {
  readonly policy: Policy | undefined
  /** Why an option that is right elsewhere is wrong here. */
  belongs(option: string): string | undefined
}

/**
 * The rule in `section`.
 *
 * @param choices the values of `algorithm` that a fault lists.
 * @param name its name as the file gives it; undefined for the library's own.
 */
export function readRule(section: Section, choices: readonly string[], name: string | undefined, nameFault: NameFault): Rule {
  const algorithm = readAlgorithm(section, choices)
  const options: Partial<Record<RuleOption, unknown>> = {}
  for (const option of algorithm === undefined ? RULE_OPTIONS : OFFERS[algorithm].options) {
    options[option] = READERS[option](section, algorithm)
    if (REQUIRED.has(option)) section.require(option)
  }
  // Without an algorithm the most lenient one applies, with the options that all of them have.
  const rule: WrittenRule = algorithm === undefined ? { limit: options.limit, window: options.window } : options
  return {
    policy: judgedPolicy(section, algorithm ?? 'fixed-window', { ...rule, name }, nameFault),
    belongs(option) {
      const others = algorithm === undefined ? undefined : algorithmsWith(option)
      return others === undefined ? undefined : `is for ${others}, not for ${algorithm}`
    },
  }
}

/** The algorithm as written or, where that is none, the nearest by spelling, so that the other options can be checked. */
function readAlgorithm(section: Section, choices: readonly string[]): AlgorithmName | undefined {
  section.require('algorithm')
  const chosen = section.oneOf('algorithm', choices)
  const written = section.written('algorithm')
  const name = chosen ?? (typeof written === 'string' ? nearest(written, ALGORITHM_NAMES) : undefined)
  return ALGORITHM_NAMES.find((known) => known === name)
}
