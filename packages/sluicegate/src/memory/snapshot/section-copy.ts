import type { SectionOptions } from '../core-memory.js'
import { ENTRIES_PER_LINE } from '../core-memory.js'
import type { OpenCore } from '../open-core.js'
import {
  isBanEntry,
  isMark,
  isOccupied,
  isOfEpoch,
  kindOf,
  MARKED_ENTRY,
  REFERENCE_KIND,
  SectionWords,
  STATE_KIND,
} from './section-words.js'
import type { MemoryPieces } from './snapshot.js'

const WORD_BYTES = 8
/** The end of the last ban where there was none: as `create` in assembly/index.ts writes it. */
const LONG_AGO = 0xc000000000000000n
/** Looks at an entry that others keep changing. */
const MOST_READS = 10_000
/** Looks at an entry with a reference, each after a longer pause: its thread may have died. The sweep that then begins again sees to that. */
const REFERENCE_LOOKS = 20

/** A part of the memory. */
interface Part {
  readonly address: number
  readonly bytes: Uint8Array
}

/** Copies one section, under the policy that this thread's core knows. */
export class SectionCopy {
  private readonly open: OpenCore
  private readonly epoch: number
  private readonly layout: SectionWords
  private readonly bytes: Uint8Array
  private readonly words: BigUint64Array
  private readonly record: number
  private readonly stride: number
  private readonly extensions: number
  /** The first of an entry's extensions is a header, the others are no words that change by themselves. */
  private readonly isLog: boolean
  // A line and the extensions of its entries, as they are copied.
  private readonly line = new BigUint64Array(2 * ENTRIES_PER_LINE)
  private readonly halves = new Uint32Array(this.line.buffer)
  private readonly beside: Uint8Array
  private readonly besideWords: BigUint64Array
  private readonly besideHalves: Uint32Array
  private readonly lineBytes = new Uint8Array(this.line.buffer)
  private readonly entryBytes: number
  private readonly stateOffset: number
  private keys = 0

  constructor(open: OpenCore, epoch: number) {
    this.open = open
    this.epoch = epoch
    this.layout = new SectionWords(open)
    this.record = open.core.policyRecord()
    this.bytes = new Uint8Array(open.memory.buffer)
    this.words = new BigUint64Array(open.memory.buffer)
    this.stride = open.field(this.record, 'RECORD_STRIDE')
    this.extensions = open.field(this.record, 'RECORD_EXTENSIONS')
    this.isLog = open.field(this.record, 'RECORD_ENCODING') === open.constant('LOG')
    this.beside = new Uint8Array(ENTRIES_PER_LINE * this.stride)
    this.besideWords = new BigUint64Array(this.beside.buffer)
    this.besideHalves = new Uint32Array(this.beside.buffer)
    this.entryBytes = open.constant('ENTRY_SIZE')
    this.stateOffset = open.constant('STATE')
  }

  get options(): SectionOptions {
    return this.layout.options
  }

  /** The table and what belongs to it. False: another policy is in force by now, or a key would not stand still. */
  tableTo(pieces: MemoryPieces, isSame: () => boolean): boolean {
    const { open, stride } = this
    const { lines } = open
    // A policy that grew the memory just now; or what was read of it was not whole, but then the epoch is another one, too.
    if (this.extensions + lines * ENTRIES_PER_LINE * stride > this.bytes.length || !isSame()) return false
    const table = this.layout.at('TABLE')
    const ends = new Uint32Array(lines)
    for (let i = 0; i < lines; i++) {
      const at = table + i * this.lineBytes.length
      if (this.isUnused(at)) continue
      const extensions = this.extensions + i * ENTRIES_PER_LINE * stride
      if (!this.copyLine(at, extensions) || !isSame()) return false
      pieces.add(at, this.lineBytes)
      ends[i] = pieces.bytes.length / WORD_BYTES
      if (stride > 0) pieces.add(extensions, this.beside)
    }
    this.lookAgain(pieces, ends)
    return true
  }

  /**
   * Looks at each line again once all are copied; `ends` says after how many words of the pieces its copy ends, 0 that it was unused. An
   * entry that has changed hands since bore a mark at some moment in between, and is put down so: its key had been forgotten then, and
   * stands where it moved in since or nowhere. Else the copy might hold a key twice, and show the one once the other is gone; or beyond an
   * entry that was never used, where no search comes until that one is.
   */
  private lookAgain(pieces: MemoryPieces, ends: Uint32Array): void {
    const copied = new BigUint64Array(pieces.bytes.buffer)
    const table = this.layout.at('TABLE')
    for (let i = 0; i < ends.length; i++) {
      const end = ends[i] as number
      const line = table + i * this.lineBytes.length
      if (end === 0 && this.isUnused(line)) continue
      for (let j = 0; j < ENTRIES_PER_LINE; j++) {
        const entry = line + j * this.entryBytes
        const identity = end === 0 ? 0n : (copied[end + 2 * (j - ENTRIES_PER_LINE)] as bigint)
        if (this.hasChangedHands(entry, identity)) pieces.add(entry, MARKED_ENTRY)
        else if (isOccupied(identity)) this.keys++
      }
    }
  }

  /** What is beside the table: the first lines, the record of the policy, the gates. */
  heads(): readonly Part[] {
    const { layout, open } = this
    const head = this.part(open.section, layout.at('RELEASED'))
    const words = new BigUint64Array(head.bytes.buffer)
    words[open.constant('KEYS') / WORD_BYTES] = BigInt(this.keys)
    words[open.constant('OVERFLOW_BUDGET') / WORD_BYTES] = this.wordAt(layout.at('OVERFLOW_BUDGET'))
    return [
      head,
      this.part(this.record, this.record + layout.recordBytes),
      // 64 KiB of zeros until the first ban, which raises the filter, then this word, and only then has an entry.
      this.part(
        layout.at('BAN_FILTER'),
        layout.at(words[open.constant('BANNED_UNTIL') / WORD_BYTES] === LONG_AGO ? 'BAN_FILTER' : 'DESCRIPTORS'),
      ),
      this.sharedCounters(),
    ]
  }

  /** What new keys without room were counted by. The budget changes with each of them: zero, so are they all. */
  private sharedCounters(): Part {
    const { address, count } = this.layout.sharedCounters
    const isUsed = this.wordAt(this.layout.at('OVERFLOW_BUDGET')) !== 0n
    const words = BigUint64Array.from({ length: isUsed ? count : 0 }, (_, i) => this.wordAt(address + i * WORD_BYTES))
    return { address, bytes: new Uint8Array(words.buffer) }
  }

  /** A word that may be part of a swap over several words. */
  private wordAt(address: number): bigint {
    const word = Atomics.load(this.words, address / WORD_BYTES)
    return kindOf(Number(word >> 32n)) === REFERENCE_KIND ? BigInt.asUintN(64, this.open.core.resolvedWord(address)) : word
  }

  private part(from: number, to: number): Part {
    return { address: from, bytes: this.bytes.slice(from, to) }
  }

  /** Entries are used one after another. */
  private isUnused(line: number): boolean {
    return Atomics.load(this.words, (line + this.stateOffset) / WORD_BYTES) === 0n
  }

  /**
   * Whether an entry has changed hands since its identity was read. Under a mark the identity may still be the old one while its key lives
   * elsewhere already, so any mark counts. The state is read first: no mark followed by the same identity means no claim until
   * the first of the two, because no mark goes before the identity has changed.
   */
  private hasChangedHands(entry: number, identity: bigint): boolean {
    const state = Atomics.load(this.words, (entry + this.stateOffset) / WORD_BYTES)
    return isMark(state) || Atomics.load(this.words, entry / WORD_BYTES) !== identity
  }

  private copyLine(at: number, extensions: number): boolean {
    for (let i = 0; i < ENTRIES_PER_LINE; i++) {
      if (!this.copyEntry(i, at + i * this.entryBytes, extensions + i * this.stride)) return false
    }
    return true
  }

  private copyEntry(i: number, entry: number, extensions: number): boolean {
    let references = 0
    for (let looks = 0; looks < MOST_READS && references < REFERENCE_LOOKS; looks++) {
      const kind = this.looked(i, entry, extensions)
      if (kind === REFERENCE_KIND) this.open.core.yieldAfter(++references)
      else if (kind !== undefined) return kind !== STATE_KIND || isOfEpoch(this.halves[4 * i + 3] as number, this.epoch)
    }
    return false
  }

  /**
   * Copies an entry, of which the state word says whether it still is the same afterwards: permits and previous counts change only with
   * it, requests of a log only with it or the header. The kind of the state; a reference's also when it is another word's; undefined when
   * something changed.
   */
  private looked(i: number, entry: number, extensions: number): number | undefined {
    const { line, halves, words } = this
    const stateAt = (entry + this.stateOffset) / WORD_BYTES
    const state = Atomics.load(words, stateAt)
    line[2 * i + 1] = state
    const kind = kindOf(halves[4 * i + 3] as number)
    if (kind === REFERENCE_KIND) return this.settled(stateAt)
    // Under a mark the identity may be the next one already. None at all: the entry has changed hands by the second look, whatever stands there then.
    line[2 * i] = kind === STATE_KIND ? Atomics.load(words, entry / WORD_BYTES) : 0n
    // The extensions of an entry that is changing hands belong to no key.
    if (this.stride > 0 && kind === STATE_KIND && !isBanEntry(halves[4 * i] as number)) {
      const outcome = this.isLog ? this.lookedAtLog(i, extensions) : this.lookedAtWords(i, extensions)
      if (outcome !== STATE_KIND) return outcome
    } else this.beside.fill(0, i * this.stride, (i + 1) * this.stride)
    return Atomics.load(words, stateAt) === state ? kind : undefined
  }

  /** Slots that the header does not hold may hold anything. */
  private lookedAtLog(i: number, extensions: number): number | undefined {
    const { besideHalves, besideWords, stride, words } = this
    const header = Atomics.load(words, extensions / WORD_BYTES)
    this.beside.set(this.bytes.subarray(extensions, extensions + stride), i * stride)
    besideWords[(i * stride) / WORD_BYTES] = header
    if (kindOf(besideHalves[(i * stride) / 4 + 1] as number) === REFERENCE_KIND) return this.settled(extensions / WORD_BYTES)
    return Atomics.load(words, extensions / WORD_BYTES) === header ? STATE_KIND : undefined
  }

  private lookedAtWords(i: number, extensions: number): number {
    const { besideHalves, besideWords, stride, words } = this
    const first = (i * stride) / WORD_BYTES
    for (let word = 0; word < stride / WORD_BYTES; word++) {
      besideWords[first + word] = Atomics.load(words, extensions / WORD_BYTES + word)
      if (kindOf(besideHalves[2 * (first + word) + 1] as number) === REFERENCE_KIND) return this.settled(extensions / WORD_BYTES + word)
    }
    return STATE_KIND
  }

  /** Its thread may have died: the core sees to it that no reference stays. */
  private settled(word: number): number {
    this.open.core.resolvedWord(word * WORD_BYTES)
    return REFERENCE_KIND
  }
}
