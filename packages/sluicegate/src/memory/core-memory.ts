import { PolicyError } from '../errors.js'
import { isInteger } from '../options/option-checks.js'
import type { Policy } from '../policy/policy.js'
import { numbersOf } from '../policy/policy-numbers.js'

// The memory in which limiters live, from outside; the core's `memory-map.ts` says what is where in a section.

export const PAGE_BYTES = 65_536
const MOST_PAGES = 65_536
const ENTRY_BYTES = 16
export const ENTRIES_PER_LINE = 4
/** Table entries a key: at this load every key finds room in its range, and a million keys take 23.3 bytes each. */
const ENTRIES_PER_KEY = 1.45
const SECOND_PART = 3
export const COUNTER_BYTES = 8
export const TABLE_OFFSET = 135_168
/** The option `maxKeys` at most. */
export const MOST_KEYS = 100_000_000
/** Descriptors begin at multiples of it. */
export const SECTION_ALIGNMENT = 1024

/** The place of one policy's keys in a memory. */
export interface Section {
  readonly address: number
  /** Lines of the table, and of its parts where it has several. */
  readonly lines: number
  readonly parts: readonly number[]
  /** Address of the counters that new keys without room share. */
  readonly counters: number
  /** Where the next one may begin. */
  readonly end: number
}

/** How many keys a section has room for. */
export interface SectionSize {
  readonly maxKeys: number
  /** What it grows to. Default: it does not. */
  readonly growTo?: number
  /** Bytes of a key beside its entry. */
  readonly stride: number
  /** Shared counters. Default none. */
  readonly counterCount?: number
}

export function sectionAt(address: number, { maxKeys, growTo = maxKeys, stride, counterCount = 0 }: SectionSize): Section {
  return sectionWith(address, partsOf(maxKeys, growTo).map(linesFor), { stride, counterCount })
}

/** The same with a table of parts with these lines. */
export function sectionWith(
  address: number,
  parts: readonly number[],
  { stride, counterCount = 0 }: Pick<SectionSize, 'stride' | 'counterCount'>,
): Section {
  const lines = parts.reduce((sum, part) => sum + part, 0)
  const counters = address + TABLE_OFFSET + lines * ENTRIES_PER_LINE * (ENTRY_BYTES + stride)
  const end = counters + counterCount * COUNTER_BYTES
  return { address, lines, parts, counters, end: Math.ceil(end / SECTION_ALIGNMENT) * SECTION_ALIGNMENT }
}

/** Keys of the parts of a table: the second is three times the first, the third all that is left. */
function partsOf(maxKeys: number, growTo: number): number[] {
  const second = Math.min(growTo - maxKeys, SECOND_PART * maxKeys)
  return [maxKeys, second, growTo - maxKeys - second].filter((keys) => keys > 0)
}

function linesFor(keys: number): number {
  return nextPrime(Math.max(2, Math.ceil((keys * ENTRIES_PER_KEY) / ENTRIES_PER_LINE)))
}

/**
 * A new memory. A page occupies only addresses until its first write. It may grow: for a change of policy, open work, and threads that die.
 *
 * @throws {PolicyError} `RANGE_UNSUPPORTED` when it would not fit, alone or beside all others; `RUNTIME_UNSUPPORTED`
 */
export function createMemory(bytes: number): WebAssembly.Memory {
  const pages = pagesOf(bytes)
  if (pages > MOST_PAGES) throw tooLarge(bytes)
  try {
    return neededOfRuntime('shared memory', () => new WebAssembly.Memory({ initial: pages, maximum: MOST_PAGES, shared: true }))
  } catch (error) {
    if (!(error instanceof RangeError)) throw error
    throw new PolicyError('RANGE_UNSUPPORTED', 'limiters', 'no memory left', MEND_MANY, { cause: error })
  }
}

const MEND_MANY =
  'a process has addresses for about 12,000 limiters in memory: let go of those that are done, or give keys of one their own limits'

export function pagesOf(bytes: number): number {
  return Math.ceil(bytes / PAGE_BYTES)
}

/** Bytes of a new section that occupy addresses but no memory: parts of the table that hold no key yet, and overflow counters. */
export function untouchedIn({ lines, parts }: Section, { stride, counterCount = 0 }: SectionSize): number {
  const later = parts.length > 1 ? lines - (parts[0] as number) : 0
  return counterCount * COUNTER_BYTES + later * ENTRIES_PER_LINE * (ENTRY_BYTES + stride)
}

let isShared = false

/** @throws {PolicyError} `RUNTIME_UNSUPPORTED` where no memory can be shared. */
export function checkSharedMemory(): void {
  if (!isShared) createMemory(0)
  isShared = true
}

/**
 * Adds `bytes` at the end of the memory and returns their address. All threads see them at once.
 *
 * @throws {PolicyError} `RANGE_UNSUPPORTED` when it would not fit.
 */
export function grownBy(memory: WebAssembly.Memory, bytes: number): number {
  try {
    return memory.grow(Math.ceil(bytes / PAGE_BYTES)) * PAGE_BYTES
  } catch {
    throw tooLarge(memory.buffer.byteLength + bytes)
  }
}

function tooLarge(bytes: number): PolicyError {
  const gib = (bytes / 2 ** 30).toFixed(1)
  return new PolicyError('RANGE_UNSUPPORTED', 'maxKeys', `${gib} GiB`, 'and the limit need more than 4 GiB: lower one of them')
}

function nextPrime(atLeast: number): number {
  for (let n = atLeast | 1; ; n += 2) if (isPrime(n)) return n
}

function isPrime(n: number): boolean {
  for (let divisor = 3; divisor * divisor <= n; divisor += 2) if (n % divisor === 0) return false
  return n > 1
}

/**
 * Calls `make`, which needs WebAssembly from bytes (edge functions refuse it) or shared memory (pages without isolation refuse it). A limiter in another
 * process works there.
 *
 * @throws {PolicyError} `RUNTIME_UNSUPPORTED`; out of memory is another matter, and thrown on.
 */
export function neededOfRuntime<Value>(what: string, make: () => Value): Value {
  try {
    return make()
  } catch (error) {
    if (error instanceof RangeError) throw error
    const mend =
      'is refused by this runtime: use a limiter that asks another process, see node_modules/sluicegate/docs/frameworks.md#elsewhere'
    throw new PolicyError('RUNTIME_UNSUPPORTED', what, error instanceof Error ? error.name : String(error), mend)
  }
}

const DEFAULT_MAX_KEYS = 100_000
/** The default stays below this many bytes of slots. */
const DEFAULT_MOST_BYTES = 2 ** 30
/** Default growth: this multiple of the initial keys, and at most the bytes below. */
const DEFAULT_GROWTH = 16
const DEFAULT_GROWN_BYTES = 2 ** 28
/** Largest memory for tables; the rest of 4 GiB is for descriptors and alignment. */
const MOST_BYTES = 2 ** 32 - 2 ** 23
/** A memory with so many bytes has no room left in which tables that come later may grow: a thousand that do not grow take the rest. */
const MOST_GROWN_BYTES = 1.5 * 2 ** 30
/** The part of that room that the next table may have. */
const LATER_PARTS = 32
/** Of a memory with so many bytes each table that comes later has room for fewer keys, so that a thousand fit with the open work of their keys. */
const CROWDED_BYTES = 2 ** 31
const CROWDED_KEYS = 25_000
/** Keys per shared overflow counter. */
const KEYS_PER_COUNTER = 16
/** Default budget of new keys without room: this share of all keys. */
const DEFAULT_SHARE = 0.01

/** The options of a section; new sections of the same limiter use the same ones. */
export interface SectionOptions {
  readonly denyWhenFull: boolean
  /** Undefined, as the next two: the default. */
  readonly maxKeys?: number | undefined
  readonly growTo?: number | undefined
  /** The joint budget of new keys without room. */
  readonly newcomers?: false | { readonly limit: number; readonly windowMs: number } | undefined
}

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

/** The room for the keys of a policy that comes to a memory later: where many do, the last tables grow less, then they are smaller. */
export function laterSizeFor(policy: Policy, options: SectionOptions, memoryBytes: number): MemorySize {
  const isCrowded = options.maxKeys === undefined && memoryBytes > CROWDED_BYTES
  return sizeFor(
    policy,
    isCrowded ? { ...options, maxKeys: CROWDED_KEYS } : options,
    Math.max(0, MOST_GROWN_BYTES - memoryBytes) / LATER_PARTS,
  )
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

/** Whether it is a budget that {@link SectionOptions} may have. */
export function isNewcomers(newcomers: unknown): newcomers is SectionOptions['newcomers'] {
  if (newcomers === undefined || newcomers === false) return true
  const { limit, windowMs } = Object(newcomers) as { readonly limit?: unknown; readonly windowMs?: unknown }
  return isInteger(limit, 1, MOST_REQUESTS) && typeof windowMs === 'number' && windowMs >= 1 && windowMs <= LONGEST_MS
}
