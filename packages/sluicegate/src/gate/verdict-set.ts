import { neededOfRuntime } from '../memory/core-memory.js'
import type { GivenVerdict, Verdict } from './gate.js'

// Verdicts in shared memory. One thread writes, any thread looks: a look reads two lines of 64 bytes and waits for nothing.
//
//   words 0..15   header: form, lines (a power of two), keys with a verdict, then free
//   line          4 entries: 4 low words, 4 high words of the fingerprints, 4 states, tags, 3 words free
//   state         0: no verdict; else severity (2 bits) | the end in ticks since the time base (30 bits)
//   tags          a byte of the fingerprint of each entry, never 0; 0 for an entry that is free
//
// A key lives in one of two lines, the emptier one when it came. The tags say with one access that a line does not have a key.
//
// A key comes in this order: fingerprint, state, tag; and goes in this one: state 0, tag 0. A look reads the tags, the fingerprint, the state,
// and the fingerprint again: where both readings agree, the state was that of the key, or 0. All accesses are atomic, and so in one order for
// all threads. Where the writer stands still between two of its steps, or for good, looks go on.

const FORM = 0x51c0_0001
const HEADER_WORDS = 16
const LINE_WORDS = 16
const ENTRIES = 4
const HIGH = 4
const STATE = 8
const TAGS = 12
const LOW_BITS = 0x0101_0101
const HIGH_BITS = 0x8080_8080
const FORM_AT = 0
const LINES_AT = 1
const KEYS_AT = 2
/** Places for each key: two lines of four are then never full but with a probability that no one meets. */
const PLACES_PER_KEY = 4
const TICK_BITS = 30
const MOST_TICKS = 2 ** TICK_BITS - 1
/** A verdict ends up to this late, and a set is of use for 4.3 years: then verdicts end at once. */
export const TICK_MS = 128

/** By severity. */
const VERDICTS: readonly Verdict[] = ['pass', 'flag', 'throttle', 'block']

/** From 0 for `pass` to 3 for `block`. */
function severityOf(verdict: Verdict): number {
  return VERDICTS.indexOf(verdict)
}

/** The verdict of a severity. */
export function verdictOf(severity: number): Verdict {
  return VERDICTS[severity] as Verdict
}

/** Looks into a set, in any thread. */
export class VerdictSet {
  readonly memory: SharedArrayBuffer
  /** Unix milliseconds from which ends count. */
  readonly baseMs: number
  protected readonly words: Int32Array
  protected readonly lineMask: number
  /** How the last {@link VerdictSet.find} ended: no object is made for a look. */
  untilMs = 0

  constructor(memory: SharedArrayBuffer, baseMs: number) {
    this.memory = memory
    this.baseMs = baseMs
    this.words = new Int32Array(memory)
    this.lineMask = (this.words[LINES_AT] as number) - 1
  }

  get isEmpty(): boolean {
    return Atomics.load(this.words, KEYS_AT) === 0
  }

  /** The verdict on a key, whether or not its time is over, and sets {@link VerdictSet.untilMs}. */
  find(low: number, high: number): Verdict {
    const pattern = Math.imul(tagOf(low, high), LOW_BITS)
    let state = this.#stateIn(this.lineOf(low), pattern, low, high)
    if (state === 0) state = this.#stateIn(this.lineOf(high), pattern, low, high)
    if (state === 0) return 'pass'
    this.untilMs = this.baseMs + (state & MOST_TICKS) * TICK_MS
    return VERDICTS[state >>> TICK_BITS] as Verdict
  }

  protected lineOf(word: number): number {
    return HEADER_WORDS + (word & this.lineMask) * LINE_WORDS
  }

  #stateIn(line: number, pattern: number, low: number, high: number): number {
    const { words } = this
    // Whether a byte of it is 0, that is, whether a tag is that of the key.
    const differing = Atomics.load(words, line + TAGS) ^ pattern
    if (((differing - LOW_BITS) & ~differing & HIGH_BITS) === 0) return 0
    for (let entry = line; entry < line + ENTRIES; entry++) {
      if (Atomics.load(words, entry) !== low || Atomics.load(words, entry + HIGH) !== high) continue
      const state = Atomics.load(words, entry + STATE)
      // The entry may have got another key between the readings, whose state this is.
      if (state !== 0 && Atomics.load(words, entry) === low && Atomics.load(words, entry + HIGH) === high) return state
    }
    return 0
  }
}

/** From 1 to 255. */
function tagOf(low: number, high: number): number {
  return (low ^ high) >>> 24 || 1
}

/** Whether it has the form of a set that was made here. */
export function isVerdictMemory(memory: unknown): memory is SharedArrayBuffer {
  if (typeof SharedArrayBuffer === 'undefined' || !(memory instanceof SharedArrayBuffer)) return false
  if (memory.byteLength < 4 * (HEADER_WORDS + LINE_WORDS) || memory.byteLength % 4 !== 0) return false
  const words = new Int32Array(memory)
  const lines = words[LINES_AT] as number
  return words[FORM_AT] === FORM && lines > 0 && (lines & (lines - 1)) === 0 && words.length === HEADER_WORDS + lines * LINE_WORDS
}

/** The set in the one thread that changes it. */
export class WrittenVerdictSet extends VerdictSet {
  constructor(maxKeys: number, baseMs: number) {
    const lines = 2 ** Math.ceil(Math.log2(Math.max(1, (maxKeys * PLACES_PER_KEY) / ENTRIES)))
    const bytes = 4 * (HEADER_WORDS + lines * LINE_WORDS)
    const memory = neededOfRuntime('shared memory', () => new SharedArrayBuffer(bytes))
    const words = new Int32Array(memory)
    words[LINES_AT] = lines
    words[FORM_AT] = FORM
    super(memory, baseMs)
  }

  /** Gives a key a verdict until a time, rounded up to {@link TICK_MS}. False where both of its lines are full. */
  set(low: number, high: number, verdict: GivenVerdict, untilMs: number): boolean {
    const { words } = this
    const known = this.#entryOf(low, high)
    const entry = known < 0 ? this.#freeEntry(low, high) : known
    if (entry < 0) return false
    const ticks = Math.min(MOST_TICKS, Math.max(0, Math.ceil((untilMs - this.baseMs) / TICK_MS)))
    const state = (severityOf(verdict) << TICK_BITS) | ticks
    if (known >= 0) {
      Atomics.store(words, entry + STATE, state)
      return true
    }
    Atomics.store(words, entry, low)
    Atomics.store(words, entry + HIGH, high)
    Atomics.store(words, entry + STATE, state)
    this.#setTag(entry, tagOf(low, high))
    Atomics.add(words, KEYS_AT, 1)
    return true
  }

  delete(low: number, high: number): void {
    const entry = this.#entryOf(low, high)
    if (entry < 0) return
    Atomics.store(this.words, entry + STATE, 0)
    this.#setTag(entry, 0)
    Atomics.sub(this.words, KEYS_AT, 1)
  }

  #setTag(entry: number, tag: number): void {
    const line = entry - (entry % LINE_WORDS)
    const tags = line + TAGS
    const shift = 8 * (entry - line)
    Atomics.store(this.words, tags, ((this.words[tags] as number) & ~(0xff << shift)) | (tag << shift))
  }

  #entryOf(low: number, high: number): number {
    const { words } = this
    for (const line of [this.lineOf(low), this.lineOf(high)])
      for (let entry = line; entry < line + ENTRIES; entry++)
        if (words[entry + STATE] !== 0 && words[entry] === low && words[entry + HIGH] === high) return entry
    return -1
  }

  #freeEntry(low: number, high: number): number {
    const { words } = this
    let best = -1
    let most = 0
    for (const line of [this.lineOf(low), this.lineOf(high)]) {
      let free = 0
      let first = -1
      for (let entry = line; entry < line + ENTRIES; entry++) {
        if (words[entry + STATE] !== 0) continue
        if (free++ === 0) first = entry
      }
      if (free > most) {
        most = free
        best = first
      }
    }
    return best
  }
}
