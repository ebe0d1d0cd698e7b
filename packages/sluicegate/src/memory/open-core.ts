import type { LimiterStats } from '../limiter.js'
import { onceInProcess } from '../once-in-process.js'
import type { ReleaseWords } from '../waiting/release-watch.js'
import { type Core, type CoreHost, closedCore } from './core.js'
import { ENTRIES_PER_LINE, grownBy, neededOfRuntime } from './core-memory.js'
import { CORE_WASM_HEX } from './core-wasm.gen.js'

/** Why the core gave no debt. */
export type Reason = 'REFUSED' | 'BANNED' | 'CONTENDED' | 'LATE' | 'EVICTED' | 'OVERFLOWED'

const REASONS: readonly Reason[] = ['REFUSED', 'BANNED', 'CONTENDED', 'LATE', 'EVICTED', 'OVERFLOWED']
/** The half of the epoch word that counts. */
const EPOCH_HALF = 4

const shared = /* @__PURE__ */ onceInProcess('core', (): { module?: WebAssembly.Module } => ({}))

/** One thread's core over a section of a shared memory. */
export class OpenCore {
  core: Core
  memory: WebAssembly.Memory
  readonly section: number
  private readonly exports: Readonly<Record<string, unknown>>

  /** Call `core.create` or `core.attach` when the host is ready for callbacks. */
  constructor(memory: WebAssembly.Memory, section: number, host: CoreHost) {
    shared.module ??= neededOfRuntime('WebAssembly', compile)
    this.exports = new WebAssembly.Instance(shared.module, { env: { memory }, host: { ...withAddresses(host), pause } }).exports
    // A plain object: an exports object is slow to look up in.
    const core = { ...this.exports } as unknown as Core
    this.core = { ...core, policyRecord: () => core.policyRecord() >>> 0, propose: () => core.propose() >>> 0 }
    this.memory = memory
    this.section = section
    const [low = 0, high = 0] = crypto.getRandomValues(new Uint32Array(2))
    this.core.seed(low, high)
  }

  /** A number that the core exports under this name. */
  constant(name: string): number {
    return (this.exports[name] as WebAssembly.Global).value
  }

  /** After a NaN: why. */
  reason(): Reason {
    return REASONS.find((reason) => this.constant(reason) === this.core.whyUnanswered()) ?? 'CONTENDED'
  }

  /** Counters since the section was laid out. */
  counters(): Omit<LimiterStats, 'memoryBytes'> {
    const counters = new BigInt64Array(this.memory.buffer, this.section)
    const counter = (name: string): number => Number(Atomics.load(counters, this.constant(name) / 8))
    return {
      keys: counter('KEYS'),
      evictions: counter('EVICTIONS'),
      refusals: counter('REFUSALS'),
      overflows: counter('OVERFLOWS'),
      casRetries: counter('CAS_RETRIES'),
      contentions: counter('CONTENTIONS'),
    }
  }

  /** A field of a policy block that the core reads. */
  field(block: number, name: string): number {
    return Number(new DataView(this.memory.buffer, block).getBigInt64(this.constant(name), true))
  }

  setField(block: number, name: string, value: number): void {
    new DataView(this.memory.buffer, block).setBigInt64(this.constant(name), BigInt(value), true)
  }

  /** The part of a policy block that the core does not read. */
  description(block: number): DataView {
    return new DataView(this.memory.buffer, block + this.constant('RECORD_DESCRIPTION'))
  }

  /** Lines of the table. */
  get lines(): number {
    return new Int32Array(this.memory.buffer, this.section + this.constant('LINES'), 1)[0] as number
  }

  /** Entries of the table. */
  get entries(): number {
    return this.lines * ENTRIES_PER_LINE
  }

  /** Changes whenever another policy, or time base, is put in force. */
  epoch(): number {
    return Atomics.load(new Int32Array(this.memory.buffer, this.section + this.constant('EPOCH') + EPOCH_HALF, 1), 0)
  }

  /** Address of the extensions that the memory was laid out with. */
  firstExtensions(): number {
    return this.section + this.constant('TABLE') + this.lines * this.constant('LINE_SIZE')
  }

  /** Address of new extensions, of `stride` bytes an entry. */
  moreExtensions(stride: number): number {
    return grownBy(this.memory, this.entries * stride)
  }

  /** Where what comes back before its time is counted. */
  releases(): ReleaseWords {
    const at = (name: string): number => (this.section + this.constant(name)) / 4
    return {
      words: new Int32Array(this.memory.buffer),
      released: at('RELEASED'),
      byAll: at('RELEASED_BY_ALL'),
      watchers: at('RELEASE_WATCHERS'),
      groups: at('RELEASE_GROUPS'),
      groupCount: this.constant('RELEASE_GROUP_COUNT'),
    }
  }

  close(): void {
    this.core = closedCore
    this.memory = new WebAssembly.Memory({ initial: 0, maximum: 0, shared: true })
  }
}

/** Numbers of 32 bits come out of the core with a sign: addresses from 2 GiB on would be negative. */
function withAddresses(host: CoreHost): CoreHost {
  return {
    policyChanged: host.policyChanged,
    calendarWindowStart: (block, us) => host.calendarWindowStart(block >>> 0, us),
    calendarWindowEnd: (block, us) => host.calendarWindowEnd(block >>> 0, us),
  }
}

function compile(): WebAssembly.Module {
  return new WebAssembly.Module(
    Uint8Array.from({ length: CORE_WASM_HEX.length / 2 }, (_, i) => Number.parseInt(CORE_WASM_HEX.slice(2 * i, 2 * i + 2), 16)),
  )
}

/** Made when it is first needed: this module also loads where no memory can be shared. */
let sleeper: Int32Array | undefined
const SPINNING_ATTEMPTS = 16

/** Another thread is in the way: spin a little at first, then let it run. */
function pause(attempt: number): void {
  sleeper ??= new Int32Array(new SharedArrayBuffer(4))
  if (attempt < SPINNING_ATTEMPTS) {
    for (let spin = attempt * 64; spin > 0; spin--) Atomics.load(sleeper, 0)
  } else {
    Atomics.wait(sleeper, 0, 0, 1)
  }
}
