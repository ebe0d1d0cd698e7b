import { dirname, resolve } from 'node:path'
import type { Policy } from 'sluicegate'
import { ConfigError } from '../fault.js'
import type { Section } from '../section.js'
import { TierData } from './tier-data.js'
import { readTierFile } from './tier-file.js'
import { type LimitOption, readKeys } from './tier-keys.js'
import { NO_DATA, Tiers, tierPolicy } from './tiers.js'

/** The names of the options for tiers in one of the two forms of files. */
export interface TierOptions {
  readonly file: 'tier-file' | 'tier_file'
  readonly limit: LimitOption
}

export const TIER_OPTIONS: TierOptions = { file: 'tier-file', limit: 'limit' }
export const ENVOY_TIER_OPTIONS: TierOptions = { file: 'tier_file', limit: 'requests_per_unit' }

/** Any other text could be a limit's id. */
const TIER_NAME = /^[\w.-]{1,64}$/

/** Whether a policy has any of the options. */
export function hasTiers(section: Section, { file }: TierOptions): boolean {
  return [section.has('tiers'), section.has('keys'), section.has(file)].includes(true)
}

/** The options `tiers`, `keys` and `tier-file` of a policy. Undefined after a fault, and without any. */
export function readTiers(
  section: Section,
  base: Policy | undefined,
  { file: fileOption, limit: limitOption }: TierOptions,
): Tiers | undefined {
  if (!hasTiers(section, { file: fileOption, limit: limitOption })) return undefined
  const before = section.faultCount
  const named = new Map<string, Policy>()
  const tiers = section.section('tiers')
  for (const name of tiers.names()) {
    if (!TIER_NAME.test(name)) tiers.nameFault(name, 'must be 1 to 64 letters, digits, dots, dashes and underscores')
    const tier = tiers.section(name)
    tier.require(limitOption)
    const written = { limit: tier.number(limitOption), window: tier.text('window', '1m'), burst: tier.number('burst') }
    tier.done()
    if (base === undefined || written.limit === undefined) continue
    const policy = tierPolicy(base, written, (option, reason) => tier.fault(option === 'limit' ? limitOption : option, reason))
    if (policy !== undefined) named.set(name, policy)
  }
  const keys = new TierData()
  readKeys(section.section('keys'), keys, limitOption)
  const name = section.text(fileOption, 'tenants.csv')
  const file = name === undefined ? undefined : resolve(dirname(section.file), name)
  try {
    const fileData = file === undefined ? NO_DATA : readTierFile(file)
    // Tiers with faults would make keys with them faulty.
    if (base === undefined || section.faultCount > before) return undefined
    return new Tiers({ base, named, keys, keysFile: section.file, file, fileData })
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    section.addFaults(error.faults)
    return undefined
  }
}
