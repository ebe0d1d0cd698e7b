import { holdsPermits } from '../decision/permit.js'
import { areSame, ByteReader, ByteWriter } from '../memory/byte-codec.js'
import { high, low } from '../memory/fingerprint.js'
import type { MemoryLimiter } from '../memory/memory-limiter.js'
import type { OpenCore } from '../memory/open-core.js'
import { placedIn } from '../memory/policy-record.js'
import type { Policy } from '../policy/policy.js'
import { type ExtensionArea, identityOf, isSectionOf, putInForce, sectionOf } from './record-section.js'

// The state of one key, between a limiter in memory and the bytes of a store:
//
//   record, a block (record-section.ts) | entry 1: 0 none, 1 one, 2 gone | generation | state word without its epoch 8 |
//   banned until, microseconds | extension, a block without the zeros at its end
//
// No bytes: the key owes nothing. An entry that is gone has a generation and no word: the next one of the key counts on from there, so that
// permits which a reset has ended differ from those that follow at the same microsecond. The limiter has a table for a few keys and holds
// only this one.

/** The name of the one key in the limiter. */
export const ONE_KEY = 'k'

const NO_ENTRY = 0
const ENTRY = 1
const GONE = 2

const WORD_BYTES = 8
const FINGERPRINT_SHIFT = 16
const GENERATION_MASK = 0x3fff
const OWNER_MASK = 7
const OWNER_SHIFT = 24
const KIND_SHIFT = 30
const STATE_KIND = 1
const USED = 0x4000_0000
const EPOCH_SHIFT = 27
/** Of the high half of a state word: owner and value. */
const STATE_MASK = 0x07ff_ffff
const LONG_AGO = -(1n << 62n)
const NOTHING = new Uint8Array(0)

/** Numbers that the core exports, looked up once: an exported global is slow to read. */
const NAMES = ['TABLE', 'LINE_SIZE', 'ENTRY_SIZE', 'KEYS', 'TAKEOVER_HIGH', 'BANNED_UNTIL', 'BAN_FILTER', 'DESCRIPTORS', 'EPOCH'] as const

/** The memory of one policy that holds one key at a time. */
export class KeyMemory {
  private readonly limiter: MemoryLimiter
  private readonly open: OpenCore
  private readonly policy: Policy
  private readonly identity: Uint8Array
  private readonly constants: Readonly<Record<(typeof NAMES)[number], number>>
  private readonly low: number
  private readonly high: number
  /** The record in force as bytes, and the epoch word by which it is in force. */
  private section: Uint8Array = NOTHING
  private epochWord = 0n
  private stride = 0
  private view: DataView = new DataView(NOTHING.buffer)
  private words: BigUint64Array = new BigUint64Array(0)
  /** Addresses of the table's entries. It has room for a few keys, and never grows. */
  private readonly entries: readonly number[]
  private readonly lines: number
  private areas: readonly ExtensionArea[] = []
  /** The end of the ban that was loaded. */
  private bannedUs = 0
  /** Of the entry that was loaded, or of the one that is gone; 0 without one. */
  private generation = 0

  /** @param policy which the limiter decides by. */
  constructor(limiter: MemoryLimiter, policy: Policy) {
    this.limiter = limiter
    this.policy = policy
    this.identity = identityOf(policy)
    this.open = limiter.section.open
    this.constants = Object.fromEntries(NAMES.map((name) => [name, this.open.constant(name)])) as typeof this.constants
    const begin = this.open.section + this.constants.TABLE
    this.lines = this.open.lines
    this.entries = Array.from({ length: this.open.entries }, (_, i) => begin + i * this.constants.ENTRY_SIZE)
    limiter.hash(ONE_KEY)
    this.low = low
    this.high = high
    this.noteRecord()
  }

  /** Whether the loaded state was left under other numbers, and may stay as it is until something changes. */
  isCarried = false

  /** @throws {RangeError} when no limiter could have left the state. Then the memory holds no key. */
  load(state: Uint8Array, nowUs: number): void {
    this.isCarried = false
    this.clear()
    if (state.length === 0) return
    const reader = new ByteReader(state)
    const section = reader.block()
    const kind = reader.byte()
    const generation = kind === NO_ENTRY ? 0 : reader.whole() & GENERATION_MASK
    const [wordLow, wordHigh] = kind === ENTRY ? [reader.word(), reader.word()] : [0, 0]
    const bannedUs = reader.whole()
    const extension = reader.block()
    if (!reader.isOver) throw new RangeError('is too long')
    if (!areSame(section, this.section)) this.putInForce(section)
    if (extension.length > this.stride) throw new RangeError('has more words than its policy')
    this.generation = generation
    if (this.areNumbered) this.numberEntries()
    if (kind === ENTRY) this.writeEntry(wordLow, wordHigh, extension)
    this.bannedUs = bannedUs
    if (bannedUs > nowUs) this.open.core.ban(this.low, this.high, nowUs, bannedUs - nowUs)
    if (isSectionOf(section, this.identity)) return
    // Its words stay readable by the old record until they are migrated, which saving does.
    this.limiter.changeTo(this.policy)()
    // The count of a window is the same whenever it is carried over; what refills goes by other numbers from then on.
    this.isCarried = this.policy.algorithm === 'fixed-window'
  }

  save(nowUs: number): Uint8Array {
    const { core } = this.open
    core.look()
    core.migrateAll()
    if (this.epoch() !== this.epochWord) this.noteRecord()
    const entry = this.entry()
    const leftUs = core.banLeft(this.low, this.high, nowUs)
    const bannedUs = leftUs > 0 ? nowUs + leftUs : this.bannedUs <= nowUs ? this.bannedUs : 0
    const gone = entry === undefined && this.areNumbered ? this.newestGeneration() : 0
    if (entry === undefined && bannedUs === 0 && gone === 0) return NOTHING
    const writer = new ByteWriter()
    writer.block(this.section)
    writer.byte(entry !== undefined ? ENTRY : gone === 0 ? NO_ENTRY : GONE)
    if (entry !== undefined) this.readEntry(writer, entry)
    else if (gone !== 0) writer.whole(gone)
    writer.whole(bannedUs)
    writer.block(entry === undefined || this.stride === 0 ? NOTHING : withoutZeros(this.extensionOf(entry)))
    return writer.written()
  }

  /** As of a key that never came. */
  clear(): void {
    const { open } = this
    const words = this.memoryWords()
    const at = (name: (typeof NAMES)[number]): number => (open.section + this.constants[name]) / WORD_BYTES
    words.fill(0n, at('TABLE'), at('TABLE') + (this.lines * this.constants.LINE_SIZE) / WORD_BYTES)
    words[at('KEYS')] = 0n
    words[at('TAKEOVER_HIGH')] = BigInt.asUintN(64, LONG_AGO)
    words[at('BANNED_UNTIL')] = BigInt.asUintN(64, LONG_AGO)
    if (this.bannedUs !== 0) words.fill(0n, at('BAN_FILTER'), at('DESCRIPTORS'))
    this.bannedUs = 0
    this.generation = 0
  }

  /** Whether generations distinguish entries: of permits a part of it does. */
  private get areNumbered(): boolean {
    return holdsPermits(this.policy)
  }

  /** Makes free entries of all: whichever the key gets next, it has a later generation. */
  private numberEntries(): void {
    if (this.generation === 0) return
    const { open, generation } = this
    const view = this.memoryView()
    const state = (USED | ((open.epoch() & 7) << EPOCH_SHIFT) | ((generation & OWNER_MASK) << OWNER_SHIFT)) >>> 0
    for (const entry of this.entries) {
      view.setUint32(entry, generation, true)
      view.setUint32(entry + WORD_BYTES + 4, state, true)
    }
  }

  /** Generations count round. */
  private newestGeneration(): number {
    const view = this.memoryView()
    let most = 0
    for (const entry of this.entries) {
      if (view.getUint32(entry + WORD_BYTES + 4, true) === 0) continue
      most = Math.max(most, (view.getUint32(entry, true) - this.generation) & GENERATION_MASK)
    }
    return (this.generation + most) & GENERATION_MASK
  }

  private putInForce(section: Uint8Array): void {
    this.section = NOTHING
    try {
      this.stride = putInForce(this.open, section, this.policy, (stride) => this.areasFor(stride))
    } catch (error) {
      throw error instanceof RangeError ? error : new RangeError(`has a policy that is none: ${String(error)}`)
    }
    this.section = section.slice()
    this.epochWord = this.epoch()
  }

  /** The current area, with room for extensions of these bytes, and a spare one. No key needs what is in them. */
  private areasFor(stride: number): readonly ExtensionArea[] {
    const bytes = stride * this.open.entries
    const fitting = this.areas.find((area) => area.bytes >= bytes)
    const current = fitting ?? { address: this.open.moreExtensions(stride), bytes }
    const spare = this.areas.filter((area) => area !== current).sort((a, b) => b.bytes - a.bytes)[0] ?? { address: 0, bytes: 0 }
    this.areas = [current, spare]
    return this.areas
  }

  private noteRecord(): void {
    const { open } = this
    const record = open.core.policyRecord()
    this.section = sectionOf(open, this.policy)
    this.epochWord = this.epoch()
    this.stride = open.field(record, 'RECORD_STRIDE')
    const areas = placedIn(open, record)?.areas
    if (areas !== undefined) this.areas = [areas.current, areas.spare]
  }

  private epoch(): bigint {
    return this.memoryView().getBigUint64(this.open.section + this.constants.EPOCH, true)
  }

  /** The same view until the memory grows. */
  private memoryView(): DataView {
    const { buffer } = this.open.memory
    if (this.view.buffer !== buffer) {
      this.view = new DataView(buffer)
      this.words = new BigUint64Array(buffer)
    }
    return this.view
  }

  private memoryWords(): BigUint64Array {
    this.memoryView()
    return this.words
  }

  private writeEntry(wordLow: number, wordHigh: number, extension: Uint8Array): void {
    const { open } = this
    const home = Math.floor(((this.low >>> 0) * this.lines) / 2 ** 32)
    const entry = open.section + this.constants.TABLE + home * this.constants.LINE_SIZE
    const view = this.memoryView()
    view.setUint32(entry, ((this.fingerprintLow << FINGERPRINT_SHIFT) | this.generation) >>> 0, true)
    view.setUint32(entry + 4, this.high >>> 0, true)
    view.setUint32(entry + WORD_BYTES, wordLow, true)
    const epoch = (open.epoch() & 7) << EPOCH_SHIFT
    view.setUint32(entry + WORD_BYTES + 4, ((wordHigh & STATE_MASK) | USED | epoch) >>> 0, true)
    if (this.stride === 0) return
    const place = this.extensionOf(entry)
    place.fill(0)
    place.set(extension)
  }

  private readEntry(writer: ByteWriter, entry: number): void {
    const view = this.memoryView()
    writer.whole(view.getUint32(entry, true) & GENERATION_MASK)
    writer.word(view.getUint32(entry + WORD_BYTES, true))
    writer.word(view.getUint32(entry + WORD_BYTES + 4, true) & STATE_MASK)
  }

  /** Address of the key's entry; undefined when it owes nothing. */
  private entry(): number | undefined {
    const view = this.memoryView()
    for (const entry of this.entries) {
      const isKey =
        view.getUint32(entry, true) >>> FINGERPRINT_SHIFT === this.fingerprintLow && view.getUint32(entry + 4, true) === this.high >>> 0
      if (isKey && view.getUint32(entry + WORD_BYTES + 4, true) >>> KIND_SHIFT === STATE_KIND) return entry
    }
    return undefined
  }

  private extensionOf(entry: number): Uint8Array {
    const { open } = this
    const number = (entry - open.section - this.constants.TABLE) / this.constants.ENTRY_SIZE
    const address = open.field(open.core.policyRecord(), 'RECORD_EXTENSIONS') + number * this.stride
    return new Uint8Array(open.memory.buffer, address, this.stride)
  }

  /** The lowest 16 bits of the fingerprint: even, and of a ban odd. */
  private get fingerprintLow(): number {
    return this.low & 0xfffe
  }
}

function withoutZeros(bytes: Uint8Array): Uint8Array {
  let end = bytes.length
  while (end > 0 && bytes[end - 1] === 0) end--
  return bytes.subarray(0, end)
}
