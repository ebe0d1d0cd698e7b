import type { Policy } from 'sluicegate'
import { ALGORITHM_NAMES, type AlgorithmName, algorithmsWith, OFFERS, type RuleOption } from '../algorithms.js'
import { judgedPolicy, type OptionFaults, type WrittenRule } from '../judged-policy.js'
import { memoryFault } from '../memory-fault.js'
import { valuesOf } from '../option.js'
import { ENVOY_PRIORITY_OPTIONS, readPriorities } from '../priorities.js'
import { listed, type Section } from '../section.js'
import { SOFT } from '../soft.js'
import { didYouMean } from '../spelling.js'
import { ENVOY_TABLE } from '../table-size.js'
import { ENVOY_TIER_OPTIONS, hasTiers, readTiers } from '../tiers/read-tiers.js'
import { policyName } from './policy-name.js'
import { hintFor, type Reading } from './reading.js'
import { type RuleLimit, UNITS, type UnitName } from './rule.js'

export const MAX_COST = 1_000_000
export const MAX_REQUESTS_PER_UNIT = 0xffff_ffff
/** Keys of a limit whose descriptors have all their values in the file: there is one. */
const KEYS_OF_CLOSED_RULE = 16
/** Permits have to be released, and Envoy does not. */
export const CHOICES = ALGORITHM_NAMES.filter((name) => name !== 'concurrency')
export const UNIT_NAMES = Object.keys(UNITS) as UnitName[]

/** The names of the library's options in this file. */
const NAMES: Readonly<Record<RuleOption, string>> = {
  limit: 'requests_per_unit',
  window: 'window',
  burst: 'burst',
  'time-zone': 'time_zone',
  ttl: 'ttl',
}

type Flags = Pick<RuleLimit, 'shadowMode' | 'quotaMode' | 'detailedMetric' | 'metadata'>

/** The section `rate_limit` of the descriptor at `path`; its policy goes to `reading`. */
export function readLimit(section: Section, reading: Reading, path: string, flags: Flags, open: boolean): RuleLimit {
  const name = (section.isGiven('name') ? section.label('name', 'per_user') : undefined) ?? ''
  const replaces = readReplaces(section, name)
  const unlimited = section.flag('unlimited') ?? false
  const unit = readUnit(section)
  const requestsPerUnit = section.integer(NAMES.limit, 0, MAX_REQUESTS_PER_UNIT)
  const chargeDenied = section.flag('charge_denied') ?? reading.chargeDenied
  const cost = section.integer('cost', 1, MAX_COST) ?? 1
  const policy = unlimited ? undefined : readPolicy(section, reading, path, unit, requestsPerUnit, open)
  if (unlimited)
    for (const option of ['unit', 'window']) if (section.has(option)) section.fault(option, 'is not for a limit that is unlimited')
  section.done((option) => (unlimited && isOption(option) ? 'is not for a limit that is unlimited' : misplaced(option)))
  return {
    ...flags,
    path,
    policy: policy?.name,
    unlimited,
    requestsPerUnit: requestsPerUnit ?? 0,
    unit,
    name,
    replaces,
    cost,
    chargeDenied,
  }
}

function readReplaces(section: Section, own: string): string[] {
  if (!section.isGiven('replaces')) return []
  return (section.list('replaces', 'names, for example - name: other') ?? []).map((entry) => {
    const name = (entry.isGiven('name') ? entry.label('name', 'other') : undefined) ?? ''
    if (name === '') entry.fault('name', 'must name a limit')
    else if (name === own) entry.fault('name', 'is the name of this limit itself')
    entry.done()
    return name
  })
}

/** Upper and lower case mean the same, as in Envoy's ratelimit service. */
function readUnit(section: Section): UnitName | undefined {
  const written = section.isGiven('unit') ? section.label('unit', 'minute') : undefined
  if (written === undefined) return undefined
  const unit = UNIT_NAMES.find((name) => name === written.toLowerCase())
  if (unit === undefined) {
    const guess = didYouMean(written.toLowerCase(), UNIT_NAMES)
    section.fault('unit', `must be ${listed(UNIT_NAMES, 'or')}, not ${JSON.stringify(written)}${guess}`)
  } else if (section.has('window')) section.fault('window', 'says the same as unit: keep one of them')
  return unit
}

function readPolicy(
  section: Section,
  reading: Reading,
  path: string,
  unit: UnitName | undefined,
  limit: number | undefined,
  open: boolean,
): Policy | undefined {
  const algorithm: AlgorithmName = section.oneOf('algorithm', CHOICES) ?? 'fixed-window'
  if (!section.has('unit') && !section.has('window'))
    section.fault('unit', `is missing: ${listed(UNIT_NAMES, 'or')}, or a window such as 30s`)
  section.require(NAMES.limit, '; 0 denies every hit')
  const window = unit === undefined ? section.text('window', '30s, or day or month of the calendar') : `${UNITS[unit].windowMs}ms`
  const written: Record<string, unknown> = { window, ...readOptions(section, algorithm) }
  const { maxKeys, onFull, maxSettle } = valuesOf(section, ENVOY_TABLE)
  // A limit of 0 denies without a policy; the options are judged as with any other.
  const faults: OptionFaults = { fault: (option, reason) => section.fault(NAMES[option as RuleOption] ?? option, reason) }
  const name = limit === 0 ? 'x' : policyName(path, reading.names)
  const rule = { ...written, ...(limit !== undefined && { limit: Math.max(1, limit) }), name } as WrittenRule
  const policy = judgedPolicy(faults, algorithm, rule, (reason) => section.fault('name', reason))
  if (!open && hasTiers(section, ENVOY_TIER_OPTIONS))
    section.fault('tiers', 'are for descriptors whose value is open: leave the value out, or write one with a *')
  if (limit === 0 && hasTiers(section, ENVOY_TIER_OPTIONS)) section.fault('tiers', 'are not for a limit of 0')
  const tiers = policy === undefined || limit === 0 ? undefined : readTiers(section, policy, ENVOY_TIER_OPTIONS)
  const priorities = readPriorities(section, ENVOY_PRIORITY_OPTIONS)
  const soft = SOFT.soft.read(section)
  if (limit === 0 && soft !== undefined) section.fault('soft', 'is not for a limit of 0')
  if (policy === undefined || limit === 0) return undefined
  const config = {
    policy,
    maxKeys: maxKeys ?? (open ? undefined : KEYS_OF_CLOSED_RULE),
    onFull,
    ...(tiers && { tiers }),
    ...(priorities && { priorities }),
    ...(maxSettle && { maxSettle }),
    ...(soft && { soft: new Map([[policy.name, soft]]) }),
  }
  const reason = memoryFault(config)
  if (reason !== undefined) section.fault('max_keys', reason)
  reading.policies.push(config)
  return policy
}

/** The options that an algorithm has beside limit and window. */
function readOptions(section: Section, algorithm: AlgorithmName): Partial<Record<RuleOption, unknown>> {
  const options: Partial<Record<RuleOption, unknown>> = {}
  for (const option of OFFERS[algorithm].options) {
    if (option === 'burst') options.burst = section.number('burst')
    else if (option === 'time-zone') options['time-zone'] = section.text(NAMES[option], 'Europe/Rome')
  }
  return options
}

function isOption(option: string): boolean {
  return (
    ['algorithm', 'max_keys', 'on_full', 'tiers', 'keys', 'tier_file', 'priorities', 'default_priority', 'max_priority', 'soft'].includes(
      option,
    ) || Object.values(NAMES).includes(option)
  )
}

function misplaced(option: string): string | undefined {
  const rule = (Object.keys(NAMES) as RuleOption[]).find((known) => NAMES[known] === option)
  const owners = rule === undefined ? undefined : algorithmsWith(rule)
  return owners === undefined ? hintFor(option) : `is for ${owners}: choose it as the algorithm`
}
