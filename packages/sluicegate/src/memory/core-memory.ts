import { PolicyError } from '../errors.js'

// The memory in which limiters live, from outside; the core's `memory-map.ts` says what is where in a section.

export const PAGE_BYTES = 65_536
const MOST_PAGES = 65_536
const ENTRY_BYTES = 16
export const ENTRIES_PER_LINE = 4
/** Table entries a key: at this load every key finds room in its range, and a million keys take 23.3 bytes each. */
const ENTRIES_PER_KEY = 1.45
const SECOND_PART = 3
export const COUNTER_BYTES = 8
/** Reserve for new descriptors when threads die in the middle of a multi-word swap. */
const SPARE_PAGES = 16
export const TABLE_OFFSET = 135_168
/** The option `maxKeys` at most. */
export const MOST_KEYS = 100_000_000
/** Descriptors begin at multiples of it. */
export const SECTION_ALIGNMENT = 512

/** The place of one policy's keys in a memory. */
export interface Section {
  readonly address: number
  /** Lines of the table, and of its parts where it has several. */
  readonly lines: number
  readonly parts: readonly number[]
  /** Address of the counters that newcomers without room share. */
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
  const parts = partsOf(maxKeys, growTo).map(linesFor)
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
 * A new memory. A page occupies only addresses until its first write. `grows`: a change of policy may need more.
 *
 * @throws {PolicyError} `RANGE_UNSUPPORTED` when it would not fit; `RUNTIME_UNSUPPORTED`
 */
export function createMemory(bytes: number, grows: boolean): WebAssembly.Memory {
  const pages = Math.ceil(bytes / PAGE_BYTES)
  if (pages > MOST_PAGES) throw tooLarge(bytes)
  const maximum = grows ? MOST_PAGES : Math.min(pages + SPARE_PAGES, MOST_PAGES)
  return neededOfRuntime('shared memory', () => new WebAssembly.Memory({ initial: pages, maximum, shared: true }))
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
