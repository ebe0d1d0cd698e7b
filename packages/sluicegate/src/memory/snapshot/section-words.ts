import type { Policy } from '../../policy/policy.js'
import type { OverflowBudget, SectionOptions } from '../core-memory.js'
import type { CoreNumber, OpenCore } from '../open-core.js'

// What a section says of its table and its options: the core's `memory-map.ts` has the layout.

/** One policy, and its table. */
export interface DescribedSection {
  readonly policy: Policy
  /** Of the parts of the table. */
  readonly lines: readonly number[]
  /** Of new keys without room; the budget is 0 requests without them. */
  readonly counters: number
  readonly overflow: OverflowBudget
}

/** Where the parts of a section are, in bytes from the beginning of the memory. */
export class SectionWords {
  private readonly open: OpenCore

  constructor(open: OpenCore) {
    this.open = open
  }

  /** Of the word at an offset that the core exports by this name. */
  at(name: CoreNumber): number {
    return this.open.section + this.open.constant(name)
  }

  /** The table and its policy, for a snapshot. */
  described(policy: Policy): DescribedSection {
    const words = new BigUint64Array(this.open.memory.buffer)
    const word = (name: CoreNumber): number => Number(Atomics.load(words, this.at(name) / 8))
    const [lines, first, second] = [word('LINES'), word('FIRST_LINES'), word('SECOND_LINES')]
    return {
      policy,
      lines: first === 0 ? [lines] : [first, second, lines - first - second].filter((part) => part > 0),
      counters: word('OVERFLOW_COUNTER_COUNT'),
      overflow: { limit: word('OVERFLOW_LIMIT'), windowUs: word('OVERFLOW_WINDOW_US') },
    }
  }

  /** The options that the section was made with. */
  get options(): SectionOptions {
    const words = new BigUint64Array(this.open.memory.buffer)
    const word = (name: CoreNumber): number => Number(Atomics.load(words, this.at(name) / 8))
    const [maxKeys, growTo, limit, windowUs] = [word('MAX_KEYS'), word('GROW_TO'), word('OVERFLOW_LIMIT'), word('OVERFLOW_WINDOW_US')]
    return {
      denyWhenFull: word('DENY_WHEN_FULL') !== 0,
      ...(maxKeys > 0 ? { maxKeys } : {}),
      ...(growTo > 0 ? { growTo } : {}),
      ...(windowUs > 0 ? { newcomers: { limit, windowMs: windowUs / 1000 } } : {}),
      ...(word('OVERFLOW_DENIED') !== 0 ? { newcomers: false } : {}),
    }
  }

  /** Writes the options of the section, before the memory is shared. */
  noteOptions({ maxKeys = 0, growTo = 0, newcomers }: SectionOptions): void {
    const words = new BigUint64Array(this.open.memory.buffer)
    words[this.at('MAX_KEYS') / 8] = BigInt(maxKeys)
    words[this.at('GROW_TO') / 8] = BigInt(growTo)
    words[this.at('OVERFLOW_DENIED') / 8] = newcomers === false ? 1n : 0n
  }
}
