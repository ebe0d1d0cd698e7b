import { PolicyError } from '../errors.js'
import { type Duration, toMs } from '../policy/duration.js'
import type { Policy } from '../policy/policy.js'
import { numbersOf } from '../policy/policy-numbers.js'
import type { SectionSize } from './core-memory.js'
import type { SectionOptions } from './snapshot/section-words.js'

const DEFAULT_MAX_KEYS = 100_000
/** The default stays below this many bytes of slots. */
const DEFAULT_MOST_BYTES = 2 ** 30
/** Default growth: this multiple of the initial keys, and at most the bytes below. */
const DEFAULT_GROWTH = 16
const DEFAULT_GROWN_BYTES = 2 ** 28
/** Largest memory for tables; the rest of 4 GiB is for descriptors and alignment. */
const MOST_BYTES = 2 ** 32 - 2 ** 23
/** Empty entries included. */
const ENTRIES_PER_KEY = 1.45
const ENTRY_BYTES = 16
/** Keys per shared overflow counter. */
const KEYS_PER_COUNTER = 16
/** Default budget of new keys without room: this share of all keys. */
const DEFAULT_SHARE = 0.01

/** Joint budget of new keys without room. With `windowUs` 0 the limit counts keys, each with the policy's own limit. */
export interface OverflowBudget {
  readonly limit: number
  readonly windowUs: number
}

/** Size of a section and of its overflow budget. */
export interface MemorySize extends SectionSize {
  readonly growTo: number
  readonly overflow: OverflowBudget | undefined
}

/** The room for the keys of policies that share a memory. */
export function memorySizesFor(policies: readonly Policy[], options: SectionOptions): MemorySize[] {
  const each = policies.map((policy) => sizeFor(policy, options, DEFAULT_GROWN_BYTES / policies.length))
  // What is there by default may just fit: then the tables stay as they are.
  const bytes = each.reduce((sum, size) => sum + size.growTo * bytesOf(size.stride), 0)
  return bytes <= MOST_BYTES ? each : policies.map((policy) => sizeFor(policy, options, 0))
}

function sizeFor(policy: Policy, options: SectionOptions, mostGrownBytes: number): MemorySize {
  const { stride } = numbersOf(policy)
  const maxKeys = options.maxKeys ?? Math.min(defaultMaxKeys(stride), options.growTo ?? Number.POSITIVE_INFINITY)
  const growTo = options.growTo ?? (options.maxKeys === undefined ? defaultGrowth(maxKeys, stride, mostGrownBytes) : maxKeys)
  const overflow = policy.algorithm === 'concurrency' ? undefined : budgetFor(growTo, options)
  return { maxKeys, growTo, stride, overflow, counterCount: overflow === undefined ? 0 : Math.ceil(growTo / KEYS_PER_COUNTER) }
}

function budgetFor(keys: number, { newcomers, denyWhenFull }: SectionOptions): OverflowBudget | undefined {
  if (newcomers === false || (newcomers === undefined && denyWhenFull)) return undefined
  if (newcomers !== undefined) return { limit: newcomers.limit, windowUs: Math.round(newcomers.windowMs * 1000) }
  const limit = Math.floor(keys * DEFAULT_SHARE)
  return limit === 0 ? undefined : { limit, windowUs: 0 }
}

function defaultMaxKeys(stride: number): number {
  return stride === 0
    ? DEFAULT_MAX_KEYS
    : Math.max(1, Math.min(DEFAULT_MAX_KEYS, Math.floor(DEFAULT_MOST_BYTES / (ENTRIES_PER_KEY * stride))))
}

function defaultGrowth(maxKeys: number, stride: number, mostBytes: number): number {
  return Math.max(maxKeys, Math.min(DEFAULT_GROWTH * maxKeys, Math.floor(mostBytes / bytesOf(stride))))
}

function bytesOf(stride: number): number {
  return ENTRIES_PER_KEY * (ENTRY_BYTES + stride)
}

const MOST_REQUESTS = 1_000_000_000
const LONGEST_MS = 366 * 86_400_000
const MEND = 'must be { limit, window }, such as { limit: 100, window: "1m" }, or false'

/**
 * The option of that name, checked.
 *
 * @throws {PolicyError} `OPTION_INVALID`, or `DURATION_INVALID` for the window.
 */
export function checkedNewcomers(newcomers: unknown): SectionOptions['newcomers'] {
  if (newcomers === undefined || newcomers === false) return newcomers
  const { limit, window, ...others } = Object(newcomers) as { readonly limit?: unknown; readonly window?: Duration }
  if (Object.keys(others).length > 0 || window === undefined) throw new PolicyError('OPTION_INVALID', 'newcomers', newcomers, MEND)
  const checked = { limit, windowMs: toMs(window, 'newcomers.window') }
  if (isNewcomers(checked)) return checked
  const range = `limit is an integer from 1 to ${MOST_REQUESTS}, window from 1ms to 366d`
  throw new PolicyError('OPTION_INVALID', 'newcomers', newcomers, `${MEND}: ${range}`)
}

/** Whether it is what {@link checkedNewcomers} gives. */
export function isNewcomers(newcomers: unknown): newcomers is SectionOptions['newcomers'] {
  if (newcomers === undefined || newcomers === false) return true
  const { limit, windowMs } = Object(newcomers) as { readonly limit?: unknown; readonly windowMs?: unknown }
  const isLimit = typeof limit === 'number' && Number.isInteger(limit) && limit >= 1 && limit <= MOST_REQUESTS
  return isLimit && typeof windowMs === 'number' && windowMs >= 1 && windowMs <= LONGEST_MS
}
