import { closedError, contentionError } from '../errors.js'
import type { LimiterStats } from '../limiter.js'
import { onceInProcess } from '../once-in-process.js'
import type { ReleaseWords } from '../waiting/release-watch.js'
import { ByteReader, ByteWriter } from './byte-codec.js'
import { ENTRIES_PER_LINE, grownBy, neededOfRuntime } from './core-memory.js'
import { CORE_WASM_HEX, type CoreNumber } from './core-wasm.gen.js'

export type { CoreNumber }

/** What the compiled core calls back. Rare. */
export interface CoreHost {
  policyChanged(): void
  /** Where a window of the calendar of a record's policy begins and ends, by a time in it; microseconds since the Unix epoch. */
  calendarWindowStart(record: number, us: number): number
  calendarWindowEnd(record: number, us: number): number
}

/**
 * Typed calls into one thread's instance of the core, WebAssembly compiled from `assembly/` by `tools/embed-wasm.ts`: each function is exported from
 * `assembly/index.ts` under its name here. Keys are the two halves of a fingerprint, times microseconds since the
 * Unix epoch, debts units of the policy in force (see `policy-numbers.ts`).
 */
export interface Core {
  create(section: number, lines: number, denyWhenFull: boolean): void
  /** Right after it: only the first lines of the table are in use until it needs more. */
  addParts(firstLines: number, secondLines: number): void
  /** Right after it: shared counters, and the budget, of new keys that find no room. */
  admitOverflow(counters: number, count: number, limit: number, windowUs: number): void
  attach(section: number): void
  /** Says whether no other thread has the memory, which saves time: not before {@link Core.create}, and no longer than until a handle is given. */
  setAlone(isAlone: boolean): void
  /** Of this thread's random numbers. */
  look(): void
  /** Does beforehand what a change of policy has to wait for. */
  prepare(): boolean
  /** Makes every word of the table one of the policy in force, and finishes what others left. False: it could not. */
  migrateAll(): boolean
  propose(): number
  /** What came of it: `IN_FORCE`, or `OVERTAKEN`: count it out again, from the policy in force by now; or `GIVEN_UP`. */
  update(record: number, nowUs: number, seenEpoch: number): number
  policyRecord(): number
  /** Whether the data read from that record is consistent: no thread has begun to write another policy there. */
  isWhole(): boolean
  /** The debt after it, -1 - debt when denied, NaN when {@link Core.whyUnanswered}. For buckets and GCRA alone, `tokens` of 32 bits. */
  take(low: number, high: number, nowUs: number, tokens: number): number
  /** The same for any encoding. */
  takeAny(low: number, high: number, nowUs: number, tokens: number): number
  /** The same of more tokens than an integer of 32 bits holds. */
  takeMany(low: number, high: number, nowUs: number, tokens: number): number
  /** The same, up to `mostUs` ahead; {@link Core.waitUs} says how far. */
  reserve(low: number, high: number, nowUs: number, tokens: number, mostUs: number): number
  /**
   * A take at its own rate, in a table without a policy: 0 or more if it passes, less if not, or NaN. {@link Core.leftUs},
   * {@link Core.owedMs} and {@link Core.lateMs} say the rest about it.
   */
  takeAtRate(low: number, high: number, nowUs: number, intervalNs: number, burst: number, tokens: number): number
  leftUs(): number
  owedMs(): number
  lateMs(): number
  /** The debt, or NaN; so do the next five. `tokens` are what `untilFree` will be asked for. */
  peek(low: number, high: number, nowUs: number, tokens: number): number
  refund(low: number, high: number, nowUs: number, tokens: number): number
  penalize(low: number, high: number, nowUs: number, tokens: number): number
  cancel(low: number, high: number, nowUs: number, tokens: number, bound: number, generation: number): number
  reset(low: number, high: number, nowUs: number): number
  /** The microseconds left, or NaN. */
  ban(low: number, high: number, nowUs: number, us: number): number
  banLeft(low: number, high: number, nowUs: number): number
  /** About the key of the last call; for buckets and GCRA the debt says it all. */
  untilFree(tokens: number): number
  untilNew(): number
  waitUs(): number
  openDescriptor(): number
  /** A take that is written down in a descriptor. */
  stage(descriptor: number, low: number, high: number, nowUs: number, tokens: number): number
  commit(descriptor: number): boolean
  /** A take among them passed though its key found no room. */
  countOverflow(): void
  closeDescriptor(descriptor: number): void
  /** Lets other threads run, the longer the more attempts were lost to them. */
  yieldAfter(lost: number): void
  /** Counts a call that was given up. */
  giveUp(): void
  /** The permit that the last take gave: what to ask for it by, and when it expires, or does since it was changed last. */
  givenPermit(): number
  givenUntilUs(): number
  /** 1 if changed, with the new expiry in `givenUntilUs`; 0 if the permit had expired or was released; or NaN. */
  changePermit(low: number, high: number, nowUs: number, renew: boolean, given: number, untilUs: number, tokens: number): number
  hasKey(low: number, high: number): number
  /** Puts a key as numbers, see {@link OpenCore.saveKey}. */
  saveKey(low: number, high: number, nowUs: number, takesOut: boolean): number
  loadKey(low: number, high: number, nowUs: number): number
  /** Reads a saved key up to its holds. */
  spentInSaved(nowUs: number): number
  clearKey(low: number, high: number, nowUs: number): void
  setGeneration(generation: number): void
  noteKey(low: number, high: number): void
  isKeyAsNoted(low: number, high: number): number
  /** Puts entries of the table, see {@link OpenCore.saveTable}. */
  saveEntries(from: number, to: number, nowUs: number): number
  changedHands(entry: number, fingerprint: number): number
  saveBesides(): void
  loadEntries(nowUs: number): number
  /** The end of holds that finds a place in the ring of a key: this one or a later one. NaN when key or ring find no room. */
  prepareHold(low: number, high: number, nowUs: number, endUs: number): number
  /** A hold that is written down in a descriptor: 0 or more if there is room, -Infinity if it has to be prepared once more. */
  stageHold(descriptor: number, low: number, high: number, nowUs: number, tokens: number, endUs: number): number
  /** Holds tokens until an end, whatever the key owes; none where there is no room. 1, or NaN. */
  carryHold(low: number, high: number, nowUs: number, tokens: number, endUs: number): number
  /** What the hold that was staged last knows its ring by. */
  ringOpened(): number
  /**
   * Spends of a hold, then of what is free, or writes that down in a descriptor that is not 0. 0 or more if it is spent. `how`: 0 what there is, 1 all
   * the same, 2 of a banned key, too; after 1 and 2 nothing is held any more.
   */
  spendHold(
    descriptor: number,
    low: number,
    high: number,
    nowUs: number,
    tokens: number,
    rest: number,
    endUs: number,
    ring: number,
    how: number,
  ): number
  /** Moves a hold to a later end, and returns the end that it has then; 0 if it has ended. */
  renewHold(low: number, high: number, nowUs: number, tokens: number, fromUs: number, toUs: number, ring: number): number
  /** About the key of the last call, after `HELD`: what its holds have left, and when the last of them ends. */
  heldTokens(): number
  heldUntilUs(): number
  /** The next time at which some of it ends, and how much; 0 for none. */
  nextEnd(us: number): number
  tokensAtEnd(): number
  /** The word at an address, with any descriptor reference there resolved. */
  resolvedWord(address: number): bigint
  whyUnanswered(): number
  detailOfUnanswered(): number
  forgotten(): number
}

/** The core of a closed limiter: every call throws. */
export const closedCore = new Proxy({} as Core, {
  get: () => () => {
    throw closedError()
  },
})

/** Why the core gave no debt. */
export type Reason = 'REFUSED' | 'BANNED' | 'CONTENDED' | 'LATE' | 'EVICTED' | 'OVERFLOWED' | 'HELD'

const REASONS: readonly Reason[] = ['REFUSED', 'BANNED', 'CONTENDED', 'LATE', 'EVICTED', 'OVERFLOWED', 'HELD']
/** The half of the epoch word that counts. */
const EPOCH_HALF = 4

const shared = /* @__PURE__ */ onceInProcess('core', (): { module?: WebAssembly.Module } => ({}))

/** Whether a key was saved under the very numbers under which it was loaded, or under others of the algorithm. */
export type LoadedAs = 'saved' | 'changed'

/** Tokens that are held until a time, in microseconds since the Unix epoch. */
export interface HeldUntil {
  readonly tokens: number
  readonly endUs: number
}

/** What saved bytes say of a key, see {@link OpenCore.readKey}. */
export interface SavedKey {
  /** Tokens. */
  readonly spent: number
  /** Microseconds since the Unix epoch; 0 if it is not blocked. */
  readonly bannedUs: number
  readonly held: readonly HeldUntil[]
}

/** By the answers of the core. */
const LOADED_AS: readonly (LoadedAs | undefined)[] = [undefined, 'saved', 'changed']

/** A memory that is made when it is needed. */
export interface LaterMemory {
  make(): WebAssembly.Memory
  readonly bytes: number
  /** Of the section: what no key occupies before it grows. */
  readonly untouchedBytes: number
}

/** What an instance of the core is made of. */
interface Instance {
  /** A plain object: an exports object is slow to look up in, and a call site that has met a proxy stays slow. */
  readonly core: Core
  readonly memory: WebAssembly.Memory
  readonly exports: Readonly<Record<string, unknown>>
}

/** One thread's core over a section of a shared memory. */
export class OpenCore {
  /** {@link Core.take} or {@link Core.takeAny}, here for speed: of the core it is one of a hundred properties. */
  take: Core['take'] = (low, high, nowUs, tokens) => this.opened() && this.take(low, high, nowUs, tokens)
  readonly section: number
  private reasons: ReadonlyMap<number, Reason> = new Map()
  /** The numbers of the key that is saved or loaded. */
  private numbersOfKeys: KeyNumbers | undefined
  private readonly host: CoreHost
  private readonly given: WebAssembly.Memory | LaterMemory
  private instance: Instance | undefined
  /** What runs when it opens. */
  private beginnings: (() => void)[] = []

  /**
   * Call `core.create` or `core.attach` by {@link begin}, when the host is ready for callbacks.
   *
   * @param memory one for later: the core opens with its first call, or when something looks at its memory. An instance costs a tenth of a
   * millisecond, and more in garbage.
   */
  constructor(memory: WebAssembly.Memory | LaterMemory, section: number, host: CoreHost) {
    shared.module ??= neededOfRuntime('WebAssembly', compile)
    this.host = host
    this.section = section
    this.given = memory
    if (!('make' in memory)) this.opened()
  }

  /** Runs `fn` now, or when it opens. */
  begin(fn: () => void): void {
    if (this.instance === undefined) this.beginnings.push(fn)
    else fn()
  }

  get core(): Core {
    return this.opened().core
  }

  /** Loads the policy in force. Before it opens no other thread knows of it, so there is nothing to look at. */
  look(): void {
    this.instance?.core.look()
  }

  hasKey(low: number, high: number): boolean {
    return Boolean(this.instance?.core.hasKey(low, high))
  }

  private get numbers(): KeyNumbers {
    this.numbersOfKeys ??= new KeyNumbers()
    return this.numbersOfKeys
  }

  get memory(): WebAssembly.Memory {
    return this.opened().memory
  }

  /**
   * A key as bytes, which {@link OpenCore.loadKey} puts into a limiter of the same algorithm, whatever its numbers and its table. Undefined for a key
   * that owes nothing and is not banned, and where `answered` says that there is no answer. `takesOut`: the key leaves the table in the same moment.
   *
   * @param answered throws when the core gave no answer.
   */
  saveKey(low: number, high: number, nowUs: number, takesOut: boolean, answered: (answer: number) => number): Uint8Array | undefined {
    if (this.later !== undefined) return undefined
    this.numbers.read(NOTHING)
    return answered(this.core.saveKey(low, high, nowUs, takesOut)) === 0 ? undefined : this.numbers.written()
  }

  /**
   * Adds a saved key. Undefined, and nothing has changed: the bytes are no saved key of this algorithm.
   *
   * @param begin where they begin.
   */
  loadKey(
    low: number,
    high: number,
    nowUs: number,
    bytes: Uint8Array,
    answered: (answer: number) => number,
    begin = 0,
  ): LoadedAs | undefined {
    this.numbers.read(bytes, begin)
    return LOADED_AS[answered(this.core.loadKey(low, high, nowUs))]
  }

  /** What a key that was saved here had spent, until when it is blocked, and what is held of it: all as of one moment. */
  readKey(nowUs: number, bytes: Uint8Array): SavedKey {
    const { core, numbers } = this
    const reader = new ByteReader(bytes)
    // Before it is which form follows.
    const [, bannedUs] = [reader.whole(), reader.whole()]
    numbers.read(bytes)
    const spent = core.spentInSaved(nowUs)
    return { spent, bannedUs, held: numbers.holds() }
  }

  /**
   * All keys as bytes, which {@link OpenCore.loadTable} puts into a table of as many lines, piece by piece; other threads go on meanwhile. Each key is as it
   * was at one moment.
   *
   * @throws {StoreError} `CONTENTION` when others kept changing a key.
   */
  *saveTable(nowUs: number): Generator<Uint8Array> {
    const { core, numbers } = this
    // A key that enters a later part of the table while it is saved came later.
    const used = this.entriesInUse
    const saved = numbers.beginTable(used)
    for (let from = 0; from < used; from += ENTRIES_AT_ONCE) {
      if (!core.saveEntries(from, Math.min(used, from + ENTRIES_AT_ONCE), nowUs)) throw contentionError()
      yield numbers.taken()
    }
    const freed: number[] = []
    for (let entry = 0; entry < used; entry++) if (core.changedHands(entry, saved[entry] as number)) freed.push(entry)
    const writer = new ByteWriter()
    if (used < this.entries) writer.whole((this.entries - used) * RUN_OF_UNUSED)
    writer.whole(freed.length)
    for (const [i, entry] of freed.entries()) writer.whole(entry - (freed[i - 1] ?? -1) - 1)
    yield writer.written()
    core.saveBesides()
    yield numbers.taken()
    numbers.endTable()
  }

  /** Fills an empty table. @returns where its bytes end, or undefined: they are none of such a table. */
  loadTable(nowUs: number, bytes: Uint8Array, begin: number): number | undefined {
    const { core, numbers } = this
    numbers.read(bytes, begin)
    core.look()
    return core.loadEntries(nowUs) ? numbers.end() : undefined
  }

  /** A number that the core exports under this name. */
  constant(name: CoreNumber): number {
    return (this.opened().exports[name] as WebAssembly.Global).value
  }

  private opened(): Instance {
    return this.instance ?? this.open()
  }

  /** Where something throws, it stays as it was, and the next call opens it. */
  private open(): Instance {
    const { take } = this
    const memory = 'make' in this.given ? this.given.make() : this.given
    const { exports } = new WebAssembly.Instance(shared.module as WebAssembly.Module, {
      env: { memory },
      host: { ...withAddresses(this.host), ...this.numbers.imports, pause },
    })
    const given = { ...exports } as unknown as Core
    const core = { ...given, policyRecord: () => given.policyRecord() >>> 0, propose: () => given.propose() >>> 0 }
    const instance = { core, memory, exports }
    this.take = core.take
    this.instance = instance
    this.reasons = new Map(REASONS.map((reason) => [this.constant(reason), reason]))
    try {
      for (const begin of this.beginnings) begin()
      this.beginnings = []
      return instance
    } catch (error) {
      this.take = take
      this.instance = undefined
      throw error
    }
  }

  /** After a NaN: why. */
  reason(): Reason {
    return this.reasons.get(this.core.whyUnanswered()) ?? 'CONTENDED'
  }

  /** Its memory, while that is not needed yet. */
  get later(): LaterMemory | undefined {
    return this.instance === undefined ? (this.given as LaterMemory) : undefined
  }

  /** Counters since the section was laid out. */
  counters(): Omit<LimiterStats, 'memoryBytes' | 'decisions'> {
    if (this.later !== undefined) return { keys: 0, evictions: 0, refusals: 0, overflows: 0, casRetries: 0, contentions: 0 }
    const counters = new BigInt64Array(this.memory.buffer, this.section)
    const counter = (name: CoreNumber): number => Number(Atomics.load(counters, this.constant(name) / 8))
    return {
      keys: counter('KEYS'),
      evictions: counter('EVICTIONS'),
      refusals: counter('REFUSALS'),
      overflows: counter('OVERFLOWS'),
      casRetries: counter('CAS_RETRIES'),
      contentions: counter('CONTENTIONS'),
    }
  }

  /** A field of a policy record that the core reads. */
  field(record: number, name: CoreNumber): number {
    return Number(new DataView(this.memory.buffer, record).getBigInt64(this.constant(name), true))
  }

  setField(record: number, name: CoreNumber, value: number): void {
    new DataView(this.memory.buffer, record).setBigInt64(this.constant(name), BigInt(value), true)
  }

  /** The part of a policy record that the core does not read. */
  description(record: number): DataView {
    return new DataView(this.memory.buffer, record + this.constant('RECORD_DESCRIPTION'))
  }

  /** Lines of the table. */
  get lines(): number {
    return new Int32Array(this.memory.buffer, this.section + this.constant('LINES'), 1)[0] as number
  }

  /** Entries of the table. */
  get entries(): number {
    return this.lines * ENTRIES_PER_LINE
  }

  /** Those of the parts of the table that any key has entered. */
  private get entriesInUse(): number {
    const words = new BigInt64Array(this.memory.buffer, this.section)
    const word = (name: CoreNumber): number => Number(Atomics.load(words, this.constant(name) / 8))
    const [first, second, grown] = [word('FIRST_LINES'), word('SECOND_LINES'), word('GROWN')]
    if (first === 0 || grown === 2) return this.entries
    return (first + (grown === 1 ? second : 0)) * ENTRIES_PER_LINE
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
    const at = (name: CoreNumber): number => (this.section + this.constant(name)) / 4
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
    const memory = new WebAssembly.Memory({ initial: 0, maximum: 0, shared: true })
    this.take = closedCore.take
    this.instance = { core: closedCore, memory, exports: this.instance?.exports ?? {} }
  }
}

const NOTHING = new Uint8Array(0)

/** Of so many entries that were never used, see saved-table.ts of the core. */
const RUN_OF_UNUSED = 4
/** Entries that one call saves: others have their turn after it. */
const ENTRIES_AT_ONCE = 8192

/** Keys between the core, which knows them as whole numbers, and their bytes. */
class KeyNumbers {
  private writer: ByteWriter | undefined
  private reader = new ByteReader(NOTHING)
  private isWriting = false
  /** Where the key begins that is written, or read. */
  private mark = 0
  /** Of a whole table: the fingerprint that was saved of each entry. */
  private fingerprints = new Float64Array(0)

  /** What the core calls. */
  readonly imports = {
    beginKey: (): void => {
      this.writer ??= new ByteWriter()
      this.writer.rewind(this.mark)
      this.reader.seek(this.mark)
    },
    endKey: (): void => {
      this.mark = this.isWriting ? (this.writer?.size ?? 0) : this.reader.place
    },
    savedEntry: (entry: number, fingerprint: number): void => {
      this.fingerprints[entry] = fingerprint
    },
    putNumber: (number: number): void => this.writer?.whole(number),
    nextNumber: (): number => this.reader.wholeOr(Number.NaN),
  }

  read(bytes: Uint8Array, begin = 0): void {
    this.reader = new ByteReader(bytes, begin)
    this.isWriting = false
    this.mark = begin
  }

  /** The holds of a key whose other numbers were read. */
  holds(): readonly HeldUntil[] {
    const held: HeldUntil[] = []
    for (let left = this.reader.wholeOr(0); left > 0; left--) held.push({ endUs: this.reader.whole(), tokens: this.reader.whole() })
    return held
  }

  /** Where what was read ends. */
  end(): number {
    const { mark } = this
    this.read(NOTHING)
    return mark
  }

  beginTable(entries: number): Float64Array {
    this.isWriting = true
    this.mark = 0
    this.fingerprints = new Float64Array(entries)
    return this.fingerprints
  }

  endTable(): void {
    this.fingerprints = new Float64Array(0)
  }

  /** What was written since it was taken last. */
  taken(): Uint8Array {
    const bytes = this.written()
    this.mark = 0
    this.writer?.rewind(0)
    return bytes
  }

  written(): Uint8Array {
    return this.writer?.copied() ?? NOTHING
  }
}

/** Numbers of 32 bits come out of the core with a sign: addresses from 2 GiB on would be negative. */
function withAddresses(host: CoreHost): CoreHost {
  return {
    policyChanged: host.policyChanged,
    calendarWindowStart: (record, us) => host.calendarWindowStart(record >>> 0, us),
    calendarWindowEnd: (record, us) => host.calendarWindowEnd(record >>> 0, us),
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
