import { CORE_WASM_BASE64 } from './core-wasm.gen.js'
import { StoreError } from './errors.js'
import type { LimiterStats } from './limiter.js'

/** What the compiled core calls back. Rare. */
export interface CoreHost {
  policyChanged(): void
}

/**
 * Typed calls into one thread's instance of the core. Keys are the two halves of a fingerprint, times microseconds since the
 * Unix epoch, debts units of the policy in force (see `emission.ts`).
 */
export interface Core {
  create(lines: number, denyWhenFull: boolean): void
  attach(): void
  look(): void
  /** Does beforehand what a change of policy has to wait for. */
  prepare(): void
  propose(): number
  update(block: number, unitsPerUs: number, unitsPerToken: number, capacity: number, packed: boolean, nowUs: number): void
  policyBlock(): number
  /** Whether what was read from that block is whole: nobody has begun to write another policy there. */
  isWhole(): boolean
  /** The debt after it, -1 - debt when denied, NaN when {@link Core.whyUnanswered}. */
  take(low: number, high: number, nowUs: number, tokens: number): number
  /** The debt, or NaN; so do the next three. */
  peek(low: number, high: number, nowUs: number): number
  refund(low: number, high: number, nowUs: number, tokens: number): number
  penalize(low: number, high: number, nowUs: number, tokens: number): number
  reset(low: number, high: number, nowUs: number): number
  /** The microseconds left, or NaN. */
  block(low: number, high: number, nowUs: number, us: number): number
  blockLeft(low: number, high: number, nowUs: number): number
  whyUnanswered(): number
  detailOfUnanswered(): number
  forgotten(): number
}

/** Why the core gave no debt. */
export type Reason = 'REFUSED' | 'BLOCKED' | 'CONTENDED' | 'LATE' | 'EVICTED'

/** One thread's core over its shared memory. */
export interface OpenCore {
  readonly core: Core
  readonly memory: WebAssembly.Memory
  /** After a NaN: why. */
  reason(): Reason
  stats(): LimiterStats
  /** The part of a policy block that the core does not read. */
  description(block: number): DataView
}

const PAGE_BYTES = 65_536
const ENTRY_BYTES = 16
const ENTRIES_PER_LINE = 4
/** Table entries a key: at this load every key finds room in its range, and a million keys take 23.3 bytes each. */
const ENTRIES_PER_KEY = 1.45
const TABLE_OFFSET = 86_016

const REASONS: readonly Reason[] = ['REFUSED', 'BLOCKED', 'CONTENDED', 'LATE', 'EVICTED']

let compiled: WebAssembly.Module | undefined

/** A fresh memory with room for `maxKeys`, and this thread's core over it. */
export function createCore(maxKeys: number, denyWhenFull: boolean, host: CoreHost): OpenCore {
  const lines = nextPrime(Math.max(2, Math.ceil((maxKeys * ENTRIES_PER_KEY) / ENTRIES_PER_LINE)))
  const pages = Math.ceil((TABLE_OFFSET + lines * ENTRIES_PER_LINE * ENTRY_BYTES) / PAGE_BYTES)
  const open = openCore(new WebAssembly.Memory({ initial: pages, maximum: pages, shared: true }), host)
  open.core.create(lines, denyWhenFull)
  return open
}

/** This thread's core over a memory that another thread created. Call `attach` when the host is ready for callbacks. */
export function openCore(memory: WebAssembly.Memory, host: CoreHost): OpenCore {
  compiled ??= new WebAssembly.Module(Uint8Array.from(atob(CORE_WASM_BASE64), (character) => character.charCodeAt(0)))
  const { exports } = new WebAssembly.Instance(compiled, { env: { memory }, host: { ...host, pause } })
  // A plain object: an exports object is slow to look up in.
  const core = { ...exports } as unknown as Core
  const constant = (name: string): number => (exports[name] as WebAssembly.Global).value
  const counters = new BigInt64Array(memory.buffer)
  const counter = (name: string): number => Number(Atomics.load(counters, constant(name) / 8))
  return {
    core,
    memory,
    reason: () => REASONS.find((reason) => constant(reason) === core.whyUnanswered()) ?? 'CONTENDED',
    stats: () => ({
      keys: counter('KEYS'),
      evictions: counter('EVICTIONS'),
      refusals: counter('REFUSALS'),
      casRetries: counter('CAS_RETRIES'),
      contentions: counter('CONTENTIONS'),
      memoryBytes: memory.buffer.byteLength,
    }),
    description: (block) => new DataView(memory.buffer, block + constant('BLOCK_DESCRIPTION')),
  }
}
/** Every call throws: what a closed limiter's core is. */
export const closedCore = new Proxy({} as Core, {
  get: () => () => {
    throw new StoreError('CLOSED', 'this limiter was closed')
  },
})

const sleeper = new Int32Array(new SharedArrayBuffer(4))
const SPINNING_ATTEMPTS = 16

/** Another thread is in the way: spin a little at first, then let it run. */
function pause(attempt: number): void {
  if (attempt < SPINNING_ATTEMPTS) {
    for (let spin = attempt * 64; spin > 0; spin--) Atomics.load(sleeper, 0)
  } else {
    Atomics.wait(sleeper, 0, 0, 1)
  }
}

function nextPrime(atLeast: number): number {
  for (let n = atLeast | 1; ; n += 2) if (isPrime(n)) return n
}

function isPrime(n: number): boolean {
  for (let divisor = 3; divisor * divisor <= n; divisor += 2) if (n % divisor === 0) return false
  return n > 1
}
