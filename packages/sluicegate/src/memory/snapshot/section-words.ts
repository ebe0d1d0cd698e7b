import type { SectionOptions } from '../core-memory.js'
import type { OpenCore } from '../open-core.js'

// The layout of a section for code that copies or restores it as a whole: the core's `memory-map.ts` and `words.ts` say what it is.

const FINGERPRINT_SHIFT = 16
/** Identities up to this one belong to no key. */
const LAST_EMPTY_IDENTITY = 0xffffn
/** Of the high half of a state word. */
const KIND_SHIFT = 30
const EPOCH_SHIFT = 27
const EPOCH_MASK = 7

/** What a word is, by its two highest bits: what a reference has, no state, mark, header, permit or previous count has. */
export const STATE_KIND = 1
export const REFERENCE_KIND = 3
/** What a mark is. */
const MARK_KIND = 2n

/** By the high half of a word. */
export function kindOf(high: number): number {
  return high >>> KIND_SHIFT
}

/** Whether a state word, by its high half, is of the epoch. */
export function isOfEpoch(high: number, epoch: number): boolean {
  return ((high >>> EPOCH_SHIFT) & EPOCH_MASK) === (epoch & EPOCH_MASK)
}

/** An entry that is changing hands: it holds no key. */
export const MARKED_ENTRY: Uint8Array = new Uint8Array(new BigUint64Array([0n, MARK_KIND << 62n]).buffer)

/** Whether a thread is claiming the entry with this state. */
export function isMark(state: bigint): boolean {
  return state >> 62n === MARK_KIND
}

/** Whether an entry holds a key or a ban, by its identity. */
export function isOccupied(identity: bigint): boolean {
  return identity > LAST_EMPTY_IDENTITY
}

/** Whether it is the entry of a key's record. It has no extensions. */
export function isBanEntry(low: number): boolean {
  return ((low >>> FINGERPRINT_SHIFT) & 1) !== 0
}

/** Where the parts of a section are, in bytes from the beginning of the memory. */
export class SectionWords {
  private readonly open: OpenCore

  constructor(open: OpenCore) {
    this.open = open
  }

  /** Of the word at an offset that the core exports by this name. */
  at(name: string): number {
    return this.open.section + this.open.constant(name)
  }

  /** The record of the policy whose reference the epoch word holds. */
  recordOf(reference: number): number {
    return this.at('RECORDS') + (reference % this.open.constant('RECORD_COUNT')) * this.recordBytes
  }

  get recordBytes(): number {
    return this.open.constant('RECORD_SIZE')
  }

  /** The end of the table. */
  tableEnd(lines: number): number {
    return this.at('TABLE') + lines * this.open.constant('LINE_SIZE')
  }

  /** Whether a number of lines is written down: a whole word, of which others read the low half. */
  hasLines(): boolean {
    const { lines, memory } = this.open
    return lines > 0 && new BigUint64Array(memory.buffer)[this.at('LINES') / 8] === BigInt(lines)
  }

  /** The counters that new keys without room share. */
  get sharedCounters(): { readonly address: number; readonly count: number } {
    const words = new BigUint64Array(this.open.memory.buffer)
    const word = (name: string): number => Number(words[this.at(name) / 8])
    return { address: word('OVERFLOW_COUNTERS'), count: word('OVERFLOW_COUNTER_COUNT') }
  }

  /** The options that the section was made with. */
  get options(): SectionOptions {
    const words = new BigUint64Array(this.open.memory.buffer)
    const word = (name: string): number => Number(Atomics.load(words, this.at(name) / 8))
    const [maxKeys, growTo, limit, windowUs] = [word('MAX_KEYS'), word('GROW_TO'), word('OVERFLOW_LIMIT'), word('OVERFLOW_WINDOW_US')]
    return {
      denyWhenFull: word('DENY_WHEN_FULL') !== 0,
      ...(maxKeys > 0 ? { maxKeys } : {}),
      ...(growTo > 0 ? { growTo } : {}),
      ...(windowUs > 0 ? { newcomers: { limit, windowMs: windowUs / 1000 } } : {}),
      ...(word('OVERFLOW_DENIED') !== 0 ? { newcomers: false } : {}),
    }
  }

  /** Writes the number of keys and the epoch of a restored table, before the memory is shared. */
  noteTable(keys: number, epoch: number): void {
    const words = new BigUint64Array(this.open.memory.buffer)
    words[this.at('KEYS') / 8] = BigInt(keys)
    words[this.at('MIGRATED') / 8] = BigInt(epoch)
  }

  /** Writes the options of the section, before the memory is shared. */
  noteOptions({ maxKeys = 0, growTo = 0, newcomers }: SectionOptions): void {
    const words = new BigUint64Array(this.open.memory.buffer)
    words[this.at('MAX_KEYS') / 8] = BigInt(maxKeys)
    words[this.at('GROW_TO') / 8] = BigInt(growTo)
    words[this.at('OVERFLOW_DENIED') / 8] = newcomers === false ? 1n : 0n
  }
}
