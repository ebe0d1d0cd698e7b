import type { CoreHost } from './core.js'
import { ENTRIES_PER_LINE } from './core-memory.js'
import { OpenCore } from './open-core.js'
import type { Algorithm, Policy } from './policy.js'
import { publishedPolicy } from './policy-block.js'
import { numbersOf, type PolicyNumbers } from './policy-numbers.js'
import { isOfBlock, isOfEpoch, kindOf, MARK_KIND, type SectionOptions, SectionWords, STATE_KIND, TICKET_KIND } from './section-words.js'
import { invalidSnapshot } from './snapshot.js'

/** The numbers of a block, by the names of its fields. */
const NUMBERS = {
  BLOCK_UNITS_PER_US: 'unitsPerUs',
  BLOCK_UNITS_PER_TOKEN: 'unitsPerToken',
  BLOCK_CAPACITY: 'capacity',
  BLOCK_WINDOW_US: 'windowUs',
  BLOCK_COUNT_BITS: 'countBits',
  BLOCK_NUMBER_BITS: 'numberBits',
  BLOCK_TICK_US: 'tickUs',
  BLOCK_SLOTS: 'slots',
  BLOCK_SLOT_BYTES: 'slotBytes',
  BLOCK_STRIDE: 'stride',
  BLOCK_CALENDAR: 'calendar',
} as const satisfies Record<string, keyof PolicyNumbers>

/** In the part of a block that only JavaScript reads: the bytes of the area in use; address and bytes of the spare one. */
const AREA_BYTES = 24
const SPARE_ADDRESS = 32
const SPARE_BYTES = 40

/** What the core writes into a block when it puts it in force, and of what it does so: see `update.ts` there. */
const BASE_US = 112
const REBASE_AT_US = 120
const SINCE_US = 128
const EPOCH = 144
const ARRIVAL_UNITS = 2n ** 56n
const LONGEST_US = 2n ** 54n
/** When a key was last forgotten, in the section; never is so long ago. */
const TAKEOVER_HIGH = 64
const LONG_AGO_US = -(2n ** 62n)
/** Some ten thousand years. */
const LATEST_US = 2n ** 58n

const VALUE_BITS = 56

/** Of a log's header: `place` and `held`, see the core's `ring.ts`. */
const PLACE_BITS = 17n
const COST_BITS = 21n
const PLACE_MASK = 2n ** PLACE_BITS - 1n

const DEAF: CoreHost = { policyChanged() {}, calendarWindowStart: () => 0, calendarWindowEnd: () => 0 }

/**
 * Looks through one section of a memory that was restored and that nobody uses yet: whatever the core would follow without asking, be it
 * an address, a length or a ticket, has to lead somewhere.
 *
 * @throws {PolicyError} `SNAPSHOT_INVALID`
 */
export function checkSection(memory: WebAssembly.Memory, section: DescribedSection): void {
  new SectionCheck(memory, section).check(section)
}

/** What a snapshot says of a section. */
interface DescribedSection {
  readonly address: number
  /** Where it has to be over. */
  readonly end: number
  readonly algorithm: Algorithm
  readonly options: SectionOptions
}

class SectionCheck {
  private readonly open: OpenCore
  private readonly layout: SectionWords
  private readonly bytes: number
  private readonly end: number
  private readonly words: BigUint64Array
  private readonly halves: Uint32Array

  constructor(memory: WebAssembly.Memory, { address, end }: DescribedSection) {
    this.open = new OpenCore(memory, address, DEAF)
    this.layout = new SectionWords(this.open)
    this.bytes = memory.buffer.byteLength
    this.end = end
    this.words = new BigUint64Array(memory.buffer)
    this.halves = new Uint32Array(memory.buffer)
  }

  check({ algorithm, options }: DescribedSection): void {
    const { layout, open } = this
    const lines = this.layout.at('DESCRIPTORS') < this.end ? this.wordAt(layout.at('LINES')) : 0n
    if (lines < 1n || lines > BigInt(this.end) || layout.tableEnd(Number(lines)) > this.end) throw invalidSnapshot('has no table')
    const takeover = this.numberAt(open.section + TAKEOVER_HIGH)
    if (takeover < LONG_AGO_US || takeover > LATEST_US) throw invalidSnapshot('has forgotten keys at no time')
    const block = this.checkedBlock()
    this.dropWhatThreadsKnow(block)
    layout.noteMaxKeys(options.maxKeys)
    // Now that the block bears the ticket in force, nobody waits for it.
    const policy = this.policyIn(open.section)
    if (policy?.algorithm !== algorithm || !this.fits(policy, block, Number(lines)))
      throw invalidSnapshot('holds no policy that its keys fit')
    const epoch = open.epoch()
    const isLog = open.field(block, 'BLOCK_FORM') === open.constant('LOG')
    const stride = open.field(block, 'BLOCK_STRIDE')
    const slots = open.field(block, 'BLOCK_SLOTS')
    const companions = open.field(block, 'BLOCK_COMPANIONS')
    for (let i = 0; i < ENTRIES_PER_LINE * Number(lines); i++) {
      const entry = layout.at('TABLE') + i * open.constant('ENTRY_SIZE')
      const state = entry + open.constant('STATE')
      if (!this.isEntry(entry, state, epoch)) throw invalidSnapshot('holds a key that is half changed')
      if (policy.calendar !== undefined && !this.isOnCalendar(entry, state, block))
        throw invalidSnapshot('counts at a time that no calendar knows')
      if (stride === 0) continue
      // Also of entries where nobody lives: who comes there looks at what he finds.
      const at = companions + i * stride
      if (isLog ? !this.isHeader(at, slots) : !this.areWords(at, stride)) throw invalidSnapshot('holds a key without what belongs to it')
    }
  }

  /** The block of the policy in force, which says itself that it is the one. */
  private checkedBlock(): number {
    const epoch = this.layout.at('EPOCH')
    const ticket = this.halves[epoch / 4] as number
    const block = this.layout.blockOf(ticket)
    const isInForce = this.halves[block / 4] === ticket && this.numberAt(block + EPOCH) === BigInt(this.open.epoch())
    if (this.open.epoch() < 1 || !isInForce) throw invalidSnapshot('has no policy in force')
    return block
  }

  /** What matters to running threads alone, and policies of the past, of which no key is. */
  private dropWhatThreadsKnow(block: number): void {
    const { layout } = this
    const blockEnd = block + layout.blockBytes
    this.clear(layout.at('RELEASED'), block)
    this.clear(blockEnd, layout.gates)
    this.clear(layout.at('DESCRIPTORS'), layout.at('TABLE'))
  }

  private clear(from: number, to: number): void {
    this.words.fill(0n, from / 8, to / 8)
  }

  private policyIn(section: number): Policy | undefined {
    try {
      this.open.core.attach(section)
      return publishedPolicy(this.open)
    } catch {
      // A field that no policy has; or a zero by which the core would divide.
      return undefined
    }
  }

  /** Whether the numbers of a block are those of its policy, and its companions lie within the memory and outside of tables. */
  private fits(policy: Policy, block: number, lines: number): boolean {
    const { open } = this
    const entries = Object.entries(NUMBERS).map(([name, key]) => [key, open.field(block, name)] as const)
    const own = numbersOf(policy)
    if (open.field(block, 'BLOCK_FORM') !== open.constant(own.form)) return false
    const numbers = { ...(Object.fromEntries(entries) as unknown as PolicyNumbers), form: own.form }
    const { countBits, slots, slotBytes, stride } = numbers
    // A log or permits may stay where they have more room.
    const expected = { ...numbersOf(policy, numbers), slotBytes: own.slotBytes }
    if (own.form === 'LOG')
      Object.assign(expected, { numberBits: VALUE_BITS - countBits, stride: 8 + 8 * Math.ceil((slots * slotBytes) / 8) })
    if (entries.some(([key, value]) => expected[key] !== value) || countBits > VALUE_BITS || !this.isTimed(block, numbers)) return false
    const view = open.description(block)
    const current = { address: open.field(block, 'BLOCK_COMPANIONS'), bytes: view.getFloat64(AREA_BYTES, true) }
    const spare = { address: view.getFloat64(SPARE_ADDRESS, true), bytes: view.getFloat64(SPARE_BYTES, true) }
    return this.isArea(current, lines) && this.isArea(spare, lines) && current.bytes >= lines * ENTRIES_PER_LINE * stride
  }

  /** Whether the time base is the one that `update` in the core chooses: only then every time fits a value. */
  private isTimed(block: number, { numberBits, tickUs, unitsPerUs }: PolicyNumbers): boolean {
    const sinceUs = this.numberAt(block + SINCE_US)
    const tick = BigInt(tickUs)
    const isLong = tick >= LONGEST_US >> BigInt(numberBits)
    const range =
      numberBits === 0 ? ARRIVAL_UNITS / BigInt(unitsPerUs) : isLong ? LONGEST_US - (LONGEST_US % tick) : tick << BigInt(numberBits)
    const base = sinceUs - range / 2n
    const into = ((base % tick) + tick) % tick
    const isOf = this.numberAt(block + BASE_US) === base - into && this.numberAt(block + REBASE_AT_US) === sinceUs + range / 4n
    return isOf && sinceUs > -LATEST_US && sinceUs < LATEST_US
  }

  private isArea({ address, bytes }: { readonly address: number; readonly bytes: number }, lines: number): boolean {
    const isPlace =
      Number.isInteger(address / 8) && Number.isInteger(bytes / 8) && address >= 0 && bytes >= 0 && address + bytes <= this.bytes
    return isPlace && (bytes === 0 || address >= this.layout.tableEnd(lines))
  }

  private isEntry(identity: number, state: number, epoch: number): boolean {
    const high = this.highOf(state)
    switch (kindOf(high)) {
      case STATE_KIND:
        return isOfEpoch(high, epoch)
      case MARK_KIND:
        return true
      default:
        return this.wordAt(state) === 0n && this.wordAt(identity) === 0n
    }
  }

  /** Whether the window of a key begins at a time of which a calendar can tell the end. */
  private isOnCalendar(identity: number, state: number, block: number): boolean {
    if (kindOf(this.highOf(state)) !== STATE_KIND || isOfBlock(this.halves[identity / 4] as number)) return true
    const number = BigInt.asUintN(VALUE_BITS, this.wordAt(state)) >> BigInt(this.open.field(block, 'BLOCK_COUNT_BITS'))
    return this.numberAt(block + BASE_US) + number * BigInt(this.open.field(block, 'BLOCK_TICK_US')) < LATEST_US
  }

  private isHeader(at: number, slots: number): boolean {
    const header = this.wordAt(at)
    const held = (header >> COST_BITS) & PLACE_MASK
    const place = (header >> (COST_BITS + PLACE_BITS)) & PLACE_MASK
    return kindOf(this.highOf(at)) === 0 && held <= BigInt(slots) && place < BigInt(slots)
  }

  private areWords(at: number, bytes: number): boolean {
    for (let word = at; word < at + bytes; word += 8) if (kindOf(this.highOf(word)) === TICKET_KIND) return false
    return true
  }

  private wordAt(address: number): bigint {
    return this.words[address / 8] as bigint
  }

  private numberAt(address: number): bigint {
    return BigInt.asIntN(64, this.wordAt(address))
  }

  private highOf(address: number): number {
    return this.halves[address / 4 + 1] as number
  }
}
