import { ByteReader, ByteWriter } from '../memory/byte-codec.js'
import { high, low } from '../memory/fingerprint.js'
import type { MemoryLimiter } from '../memory/memory-limiter.js'
import type { Core } from '../memory/open-core.js'

// The state of one key, between a limiter in memory and the bytes of a store: its generation, then the key as the core saves it. No bytes:
// the key owes nothing. The generation counts the changes of its numbers, by whatever process: of a charge from before one nothing comes back.

/** The name of the one key in the limiter. */
export const ONE_KEY = 'k'

const NOTHING = new Uint8Array(0)

/** The memory of one policy that holds one key at a time. */
export class KeyMemory {
  private readonly limiter: MemoryLimiter
  /** Whether a key of other numbers stays as it was saved until something changes. */
  private readonly mayWait: boolean
  private readonly isRate: boolean
  private readonly low: number
  private readonly high: number
  private loaded: Uint8Array = NOTHING
  /** Whether it was saved under other numbers, and may stay so. */
  isOther = false
  private isChanged = false
  private generation = 0
  private bannedUs = 0

  /** @param limiter with room for a few keys, which has this one alone. */
  constructor(limiter: MemoryLimiter) {
    this.limiter = limiter
    const { algorithm } = limiter.policyOf()
    this.isRate = algorithm === 'token-bucket' || algorithm === 'gcra'
    this.mayWait = this.isRate || algorithm === 'fixed-window'
    limiter.hash(ONE_KEY)
    this.low = low
    this.high = high
  }

  /** Whether the store had nothing of the key. */
  get isNew(): boolean {
    return this.loaded.length === 0
  }

  /**
   * A rate or fixed window of other numbers that still counts is carried over as of the time at which it was written, so that a denial has nothing to write:
   * versions of a policy side by side would write their own numbers in turns, and forgive with each what was spent beyond them.
   *
   * @param writtenUs the time of its last change.
   * @throws {RangeError} when no limiter could have left the state. Then the memory holds no key.
   */
  load(state: Uint8Array, nowUs: number, writtenUs: number): void {
    const reader = new ByteReader(state)
    const generation = state.length === 0 ? 0 : reader.whole()
    const { core, low, high } = this
    core.clearKey(low, high, nowUs)
    this.loaded = NOTHING
    this.isOther = false
    this.isChanged = false
    this.begin(generation)
    if (state.length > 0) {
      const loadedAt = (us: number) => this.limiter.section.open.loadKey(low, high, us, state, this.answered, reader.place)
      const loadedAs = loadedAt(nowUs)
      if (loadedAs === undefined) throw new RangeError('has a key that no limiter could have left')
      const isOther = loadedAs === 'changed'
      if (isOther) this.begin(generation + 1)
      this.isOther = isOther && this.mayWait
      if (this.isOther && writtenUs < nowUs) {
        const debtNow = core.peek(low, high, nowUs, 1)
        if (debtNow > 0) this.reload(loadedAt, writtenUs, nowUs)
        // What a rate owes is paid by the faster of both paces.
        if (this.isRate && core.peek(low, high, nowUs, 1) > debtNow) this.reload(loadedAt, nowUs, nowUs)
      }
      this.loaded = state
      this.isChanged = isOther && !this.mayWait
    }
    core.noteKey(low, high)
    this.bannedUs = core.banLeft(low, high, nowUs)
  }

  /** The same bytes for a key that is as it was loaded. */
  save(nowUs: number): Uint8Array {
    const { core, low, high, loaded } = this
    const isSame = !this.isChanged && core.isKeyAsNoted(low, high) !== 0 && core.banLeft(low, high, nowUs) === this.bannedUs
    if (isSame) return loaded
    const key = this.limiter.section.open.saveKey(low, high, nowUs, false, this.answered)
    if (key === undefined) return NOTHING
    const writer = new ByteWriter()
    writer.whole(this.generation)
    writer.raw(key)
    return writer.written()
  }

  private reload(loadedAt: (us: number) => unknown, us: number, nowUs: number): void {
    this.core.clearKey(this.low, this.high, nowUs)
    loadedAt(us)
  }

  private begin(generation: number): void {
    this.generation = generation
    this.core.setGeneration(generation)
  }

  private get core(): Core {
    return this.limiter.core
  }

  private readonly answered = (answer: number): number => this.limiter.decisions.answered(answer, ONE_KEY)
}
