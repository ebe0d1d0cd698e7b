import type { Policy } from 'sluicegate'
import { ALGORITHM_NAMES, type AlgorithmName, algorithmsWith, CALENDAR_UNITS, OFFERS, RULE_OPTIONS, type RuleOption } from './algorithms.js'
import { judgedPolicy, type NameFault, type WrittenRule } from './judged-policy.js'
import { choice, type JsonSchema, type Kind, type Option, option, schemaOf, type Table, text } from './option.js'
import type { Section } from './section.js'
import type { SoftLimits } from './soft.js'
import { nearest } from './spelling.js'

const REQUIRED: ReadonlySet<string> = new Set(['limit', 'window'])
const MOST_TOKENS = Number.MAX_SAFE_INTEGER
const DURATIONS = '250ms, 10s, 1m, 24h or 30d'
const SPAN = '\\d[\\d.]*(ms|s|m|h|d)'

/** As written: the policy checks its range, and says what it is. */
const tokens: Kind<number> = {
  schema: { type: 'integer', minimum: 1, maximum: MOST_TOKENS },
  read: (section, name) => section.number(name),
}

/** A bare number would be milliseconds to the library and seconds to most readers. */
const span = (example: string, pattern: string): Kind<string> => ({ ...text(example), schema: { type: 'string', pattern } })

const windowOption = (kind: Kind<string>): Option<string | undefined> =>
  option('window', kind, {
    what: 'A number with a unit, 1 ms to 366 days: `250ms`, `10s`, `1m`, `24h`, `30d`. Of `fixed-window` also `day`, `week`, `month`, `year`.',
    example: '10s',
  })
const CALENDAR = windowOption(span(`${DURATIONS}, or day, week, month or year`, `^(${SPAN}|${CALENDAR_UNITS.join('|')})$`))

/** The options of algorithms. */
const OPTIONS: Readonly<Record<RuleOption, Option<unknown>>> = {
  limit: option('limit', tokens, {
    what: 'Tokens in a window, 1 to 9,007,199,254,740,991, or [the largest](which-limiter.md#the-largest-limits) of its window; of a log to 100,000, of `concurrency` to 10,000 permits.',
    example: 100,
  }),
  window: windowOption(span(DURATIONS, `^${SPAN}$`)),
  burst: option('burst', tokens, { what: 'Tokens at once. Default: the limit.', example: 20 }),
  'time-zone': option('time-zone', text('Europe/Rome'), {
    what: 'The IANA zone of windows of the calendar.',
    usual: 'UTC',
    example: 'Europe/Rome',
  }),
  ttl: option('ttl', span('30s', `^${SPAN}$`), {
    what: 'The time after which a permit without a heartbeat ends.',
    usual: '30s',
    example: '2m',
  }),
}

function optionOf(name: RuleOption, algorithm: AlgorithmName | undefined): Option<unknown> {
  return name === 'window' && algorithm === 'fixed-window' ? CALENDAR : OPTIONS[name]
}

/** How tokens are counted. */
const ALGORITHM = option('algorithm', choice(ALGORITHM_NAMES), {
  what: 'How tokens are counted. `all-of` is written as a list of that name.',
  example: 'gcra',
})

/** The schema of a rule: for each algorithm with its options, and with `more` of all. */
export function ruleSchema(more: Table): JsonSchema {
  return {
    type: 'object',
    required: ['algorithm'],
    properties: { algorithm: ALGORITHM.schema },
    allOf: ALGORITHM_NAMES.map((algorithm) => {
      const is = { properties: { algorithm: { const: algorithm } } }
      const own = OFFERS[algorithm].options
      const options = Object.fromEntries(own.map((name) => [name, optionOf(name, algorithm)]))
      const { properties, ...then } = schemaOf({ ...options, ...more })
      return {
        if: { ...is, required: ['algorithm'] },
        // biome-ignore lint/suspicious/noThenProperty: a word of JSON Schema
        then: {
          ...then,
          properties: { ...is.properties, ...(properties as object) },
          required: ['algorithm', ...own.filter((name) => REQUIRED.has(name))],
        },
      }
    }),
  }
}

/** A tier, or the limit of a key: what it has in the place of the policy's. `limit` is the name of that option. */
export function tierSchema(limit: string): JsonSchema {
  return schemaOf({
    limit: option(limit, tokens, { what: 'Tokens in a window.', example: 1000, required: '' }),
    window: option('window', text('1m'), { what: 'Default: that of the policy.', example: '1m' }),
    burst: option('burst', tokens, { what: 'Tokens at once. Default: the limit.', example: 50 }),
  })
}

/** A section read before {@link Section.done}. After a fault its policy is meaningless, because the file is refused. */
export interface Rule {
  readonly policy: Policy | undefined
  /** Of an all-of: by part. */
  readonly soft?: SoftLimits
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
    options[option] = optionOf(option, algorithm).read(section)
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
