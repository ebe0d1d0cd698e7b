import { allOf } from '../policy/all-of.js'
import type { Policy } from '../policy/policy.js'

/**
 * Several policies as one: the same object until a part or the name changes. Making it costs more than a decision, and callers cache by its
 * identity.
 */
export class WholePolicy {
  private parts: readonly Policy[] = []
  private whole: Policy | undefined

  of(name: string, parts: readonly Policy[]): Policy {
    const { whole } = this
    if (whole?.name === name && parts.every((part, i) => part === this.parts[i])) return whole
    const made = allOf(parts, { name })
    this.whole = made
    this.parts = parts
    return made
  }
}

// A name that several threads see and may change.

/** One more than the length while it is being written. */
const VERSION = 0
const LENGTH = 1
const TEXT = 2
/** No name of a policy is longer. */
const MOST_LETTERS = 120
/** Of the memory of a name. */
export const NAME_BYTES = (TEXT + MOST_LETTERS) * 4
/** Reads during a write before the last known name is used. */
const PATIENCE = 1000

/**
 * A short text in shared memory, ASCII.
 *
 * Ordering: the version is odd while a thread writes and changes with every write. A text is consistent if the version is the same even
 * number before and after it is read. If a thread dies while it writes, each thread keeps the name that it last read.
 */
export class SharedName {
  /** What to post to another thread. */
  readonly shared: SharedArrayBuffer
  private readonly words: Int32Array
  private last = ''
  /** The version that it is of. */
  private lastVersion = -1

  /** @param name the text, or what another thread posted of it. */
  constructor(name: string | SharedArrayBuffer) {
    this.shared = typeof name === 'string' ? new SharedArrayBuffer(NAME_BYTES) : name
    this.words = new Int32Array(this.shared)
    if (typeof name === 'string') this.text = name
  }

  get text(): string {
    for (let look = 0; look < PATIENCE; look++) {
      const version = Atomics.load(this.words, VERSION)
      if (version % 2 !== 0) continue
      if (version === this.lastVersion) break
      const text = this.read()
      if (Atomics.load(this.words, VERSION) !== version) continue
      this.last = text
      this.lastVersion = version
      break
    }
    return this.last
  }

  /** Of two threads that write at the same time, one succeeds. */
  set text(text: string) {
    this.last = text
    const version = Atomics.load(this.words, VERSION)
    if (version % 2 !== 0 || Atomics.compareExchange(this.words, VERSION, version, version + 1) !== version) return
    Atomics.store(this.words, LENGTH, text.length)
    for (let i = 0; i < text.length; i++) Atomics.store(this.words, TEXT + i, text.charCodeAt(i))
    Atomics.store(this.words, VERSION, version + 2)
  }

  private read(): string {
    const length = Math.min(Atomics.load(this.words, LENGTH), MOST_LETTERS)
    return String.fromCharCode(...Array.from({ length }, (_, i) => Atomics.load(this.words, TEXT + i)))
  }
}
