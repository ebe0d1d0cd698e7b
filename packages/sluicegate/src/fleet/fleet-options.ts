import { PolicyError } from '../errors.js'
import type { LayerOptions } from '../layers/limiter-layers.js'
import { unknownOption } from '../options/option-checks.js'
import { checkedQueueOptions, type QueueOptions } from '../queue/queue-options.js'
import type { OutageMode } from './outage.js'

/** What every limiter takes that shares its budget with other processes. */
export interface FleetOptions extends Omit<LayerOptions, 'overrides' | 'clock'> {
  /** Who decides while the store cannot be reached: a share of the budget here (`local`, the default), `open` lets all pass, `closed` none. */
  readonly outage?: OutageMode
  /** The share of the budget that each process may spend by itself in an outage, above 0 to 1; default 0.1. */
  readonly localShare?: number
  /** How long the store may take to answer, in milliseconds, 1 to 60,000; default 100. */
  readonly timeoutMs?: number
  /** Keys of which something is remembered here, 1 to 10,000,000; default 100,000. Others are decided by the store each time. */
  readonly maxKeys?: number
  /** Keep a top list of this many keys by demand and by denial, at most 10,000; default 0, none. */
  readonly hotKeys?: number
  /** How many callers may be in `wait` at once: 0 to 1,000,000, default 10,000. */
  readonly maxWaiters?: number
  /** Bounds of the queue behind `run` and `wrap`; it belongs to this process. */
  readonly queue?: QueueOptions
  /**
   * Keep policies of single keys where the state is, for all processes that have this option: see `limiter.overrides`. A change made elsewhere is
   * known here after `staleMs` at most, 10 to 3,600,000, default 1,000.
   */
  readonly overrides?: boolean | { readonly staleMs?: number }
}

export const FLEET_OPTIONS: readonly (keyof FleetOptions)[] = [
  'outage',
  'localShare',
  'timeoutMs',
  'maxKeys',
  'hotKeys',
  'maxWaiters',
  'queue',
  'policyFor',
  'policies',
  'allow',
  'deny',
  'shadow',
  'overrides',
  'banAfter',
]

const OVERRIDES_OPTIONS: ReadonlySet<string> = new Set(['staleMs'])
const DEFAULT_STALE_MS = 1_000

const LEASE_OPTIONS: ReadonlySet<string> = new Set(['horizonMs'])

/** @throws {PolicyError} `OPTION_INVALID` */
export function checkFleetOptions({ outage, localShare, timeoutMs, maxKeys, hotKeys, maxWaiters, queue }: FleetOptions): void {
  checkOneOf('outage', outage, ['local', 'open', 'closed'])
  checkWithin('localShare', localShare, Number.MIN_VALUE, 1)
  checkWithin('timeoutMs', timeoutMs, 1, 60_000)
  checkWhole('maxKeys', maxKeys, 1, 10_000_000)
  checkWhole('hotKeys', hotKeys, 0, 10_000)
  checkWhole('maxWaiters', maxWaiters, 0, 1_000_000)
  if (queue !== undefined) checkedQueueOptions(queue)
}

/** @throws {PolicyError} `OPTION_INVALID`, `OPTION_UNKNOWN` */
export function checkOptionNames(options: unknown, known: ReadonlySet<string>, example: string, within?: string, of?: string): void {
  if (typeof options !== 'object' || options === null || Array.isArray(options)) {
    throw new PolicyError('OPTION_INVALID', within ?? 'options', options, `must be an object such as ${example}`)
  }
  for (const [name, value] of Object.entries(options)) {
    const option = within === undefined ? name : `${within}.${name}`
    if (!known.has(name)) throw unknownOption({ option, value, known: [...known], of: within ?? of })
  }
}

/**
 * After how long overrides have to be looked at again; undefined without them.
 *
 * @throws {PolicyError} `OPTION_INVALID`, `OPTION_UNKNOWN`
 */
export function overridesStaleMs(overrides: FleetOptions['overrides']): number | undefined {
  if (overrides === undefined || overrides === false) return undefined
  if (overrides === true) return DEFAULT_STALE_MS
  checkOptionNames(overrides, OVERRIDES_OPTIONS, '{ staleMs: 1000 }', 'overrides')
  checkWithin('overrides.staleMs', overrides.staleMs, 10, 3_600_000)
  return overrides.staleMs ?? DEFAULT_STALE_MS
}

/**
 * The option `lease`, as whoever leases or hands out takes it.
 *
 * @throws {PolicyError} `OPTION_INVALID`, `OPTION_UNKNOWN`
 */
export function checkLease(lease: { readonly horizonMs?: number } | undefined): void {
  if (lease === undefined) return
  checkOptionNames(lease, LEASE_OPTIONS, '{ horizonMs: 50 }', 'lease')
  checkWithin('lease.horizonMs', lease.horizonMs, 1, 10_000)
}

/** @throws {PolicyError} `OPTION_INVALID` */
export function checkOneOf(option: string, value: unknown, known: readonly string[]): void {
  if (value === undefined || known.includes(value as string)) return
  throw new PolicyError('OPTION_INVALID', option, value, `must be one of ${known.map((name) => `'${name}'`).join(', ')}`)
}

/** @throws {PolicyError} `OPTION_INVALID` */
function checkWithin(option: string, value: unknown, least: number, most: number): void {
  if (value === undefined || (typeof value === 'number' && value >= least && value <= most)) return
  throw new PolicyError(
    'OPTION_INVALID',
    option,
    value,
    `must be a number ${least === Number.MIN_VALUE ? 'above 0' : `from ${least}`} to ${most}`,
  )
}

function checkWhole(option: string, value: unknown, least: number, most: number): void {
  checkWithin(option, value, least, most)
  if (value !== undefined && !Number.isInteger(value)) throw new PolicyError('OPTION_INVALID', option, value, 'must be an integer')
}
