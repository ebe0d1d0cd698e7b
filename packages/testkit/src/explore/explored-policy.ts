/** How a state word is read, by its name in the core. */
export type Encoding = 'ARRIVAL' | 'BUCKET' | 'FIXED' | 'SLIDING' | 'WIDE' | 'LOG' | 'CONCURRENCY'

/** A policy in the numbers that the core counts in. */
export interface ExploredPolicy {
  readonly encoding: Encoding
  readonly unitsPerUs: number
  /** Of everything but buckets and GCRA a token is a unit. */
  readonly unitsPerToken: number
  /** Most tokens at once. */
  readonly burst: number
  /** Window, or the life of a permit, in microseconds. */
  readonly windowUs: number
  /** Width of a number or time in a state word, where it is to be so small that the time base moves. */
  readonly numberBits?: number
}

/** Numbers of a policy block, by their names in the core. */
export type RecordNumbers = Readonly<Record<(typeof RECORD_NUMBERS)[number], number>>

export const RECORD_NUMBERS = [
  'RECORD_UNITS_PER_US',
  'RECORD_UNITS_PER_TOKEN',
  'RECORD_CAPACITY',
  'RECORD_WINDOW_US',
  'RECORD_COUNT_BITS',
  'RECORD_NUMBER_BITS',
  'RECORD_TICK_US',
  'RECORD_SLOTS',
  'RECORD_STRIDE',
] as const

const VALUE_BITS = 56
/** Enough for every count that a scenario comes to. */
const COUNT_BITS = 6

/** One token a millisecond, three at once: all numbers are small and exact. */
export const PLAIN: ExploredPolicy = { encoding: 'ARRIVAL', unitsPerUs: 1, unitsPerToken: 1000, burst: 3, windowUs: 3000 }

/** Whether the policy is a bucket or GCRA. */
export function isRate({ encoding }: ExploredPolicy): boolean {
  return encoding === 'ARRIVAL' || encoding === 'BUCKET'
}

/** A policy that counts tokens: `limit` in a window, or in flight for at most so long. */
export function counting(encoding: Encoding, limit: number, windowUs: number): ExploredPolicy {
  return { encoding, unitsPerUs: 1, unitsPerToken: 1, burst: limit, windowUs }
}

/** What stands in the policy's block; `before` are the numbers of the policy that it follows. */
export function blockNumbers(policy: ExploredPolicy, before: RecordNumbers | undefined): RecordNumbers {
  const { encoding, burst, windowUs } = policy
  const layout = layoutOf(policy, before)
  const { countBits = 0, slots = 0, stride = 0 } = layout
  const numberBits = policy.numberBits ?? layout.numberBits ?? VALUE_BITS - countBits
  return {
    RECORD_UNITS_PER_US: policy.unitsPerUs,
    RECORD_UNITS_PER_TOKEN: policy.unitsPerToken,
    RECORD_CAPACITY: burst * policy.unitsPerToken,
    // A bucket and GCRA have none: with one, each call would bring its own rate.
    RECORD_WINDOW_US: isRate(policy) ? 0 : windowUs,
    RECORD_COUNT_BITS: countBits,
    RECORD_NUMBER_BITS: numberBits,
    RECORD_TICK_US: isRate(policy) || encoding === 'LOG' || encoding === 'CONCURRENCY' ? 1 : windowUs,
    RECORD_SLOTS: slots,
    RECORD_STRIDE: stride,
  }
}

interface Layout {
  readonly countBits?: number
  readonly numberBits?: number
  readonly slots?: number
  readonly stride?: number
}

function layoutOf({ encoding, burst }: ExploredPolicy, before: RecordNumbers | undefined): Layout {
  const slotsBefore = before?.RECORD_SLOTS ?? 0
  switch (encoding) {
    case 'ARRIVAL':
      return { numberBits: 0 }
    case 'BUCKET':
      return { numberBits: 42 }
    case 'SLIDING':
      return { countBits: 16, numberBits: 24 }
    case 'WIDE':
      return { countBits: COUNT_BITS, numberBits: VALUE_BITS - 1 - COUNT_BITS, stride: 8 }
    case 'LOG': {
      const slots = Math.max(burst + 1, slotsBefore)
      return { countBits: COUNT_BITS, slots, stride: 8 + 8 * slots }
    }
    case 'CONCURRENCY': {
      const slots = Math.max(burst, slotsBefore)
      return { numberBits: 40, slots, stride: slots * 8 }
    }
    default:
      return { countBits: COUNT_BITS }
  }
}

/** Bytes of extensions that a policy may have, and for how many policies there is room. */
const AREA_BYTES = 256
const MOST_AREAS = 10

/** Numbers, and the address of the extensions. */
type PlacedNumbers = RecordNumbers & { readonly extensions: number }

/** What JavaScript does for a policy beside the core: numbers into its block, and room for extensions. */
export class PolicyRecords {
  /** Bytes of all extensions. */
  readonly extensions: readonly [number, number]
  private readonly words: BigInt64Array
  private readonly constant: (name: string) => number
  private areas = 1

  constructor(memory: WebAssembly.Memory, constant: (name: string) => number, extensionsAt: number) {
    this.words = new BigInt64Array(memory.buffer)
    this.constant = constant
    this.extensions = [extensionsAt, extensionsAt + MOST_AREAS * AREA_BYTES]
  }

  /** Room for extensions is given out from the start. */
  reset(): void {
    this.areas = 1
  }

  /** The numbers in a block; undefined when there are none. */
  read(block: number): PlacedNumbers | undefined {
    if (this.field(block, 'RECORD_CAPACITY') === 0) return undefined
    const numbers = Object.fromEntries(RECORD_NUMBERS.map((name) => [name, this.field(block, name)])) as RecordNumbers
    return { ...numbers, extensions: this.field(block, 'RECORD_EXTENSIONS') }
  }

  /** The numbers of a policy that follows the one with the numbers `before`, and where its extensions are. */
  next(policy: ExploredPolicy, before: PlacedNumbers | undefined): PlacedNumbers {
    const numbers = blockNumbers(policy, before)
    return { ...numbers, extensions: this.extensionsFor(numbers, before) }
  }

  /** The epoch as which the policy in a block was put in force. */
  epochOf(block: number): number {
    return this.field(block, 'RECORD_EPOCH')
  }

  write(block: number, policy: ExploredPolicy, { extensions, ...numbers }: PlacedNumbers): void {
    for (const name of RECORD_NUMBERS) this.setField(block, name, numbers[name])
    this.setField(block, 'RECORD_ENCODING', this.constant(policy.encoding))
    this.setField(block, 'RECORD_EXTENSIONS', extensions)
  }

  /** With those of the policy before, unless they are more, or written in another way. */
  private extensionsFor(numbers: RecordNumbers, before: PlacedNumbers | undefined): number {
    const [first, end] = this.extensions
    if (before === undefined) return first
    if (numbers.RECORD_STRIDE <= before.RECORD_STRIDE && numbers.RECORD_COUNT_BITS === before.RECORD_COUNT_BITS) return before.extensions
    const area = first + this.areas++ * AREA_BYTES
    if (area >= end) throw new Error('there is no room for this many extensions')
    return area
  }

  private field(block: number, name: string): number {
    return Number(this.words[(block + this.constant(name)) / 8])
  }

  private setField(block: number, name: string, value: number): void {
    this.words[(block + this.constant(name)) / 8] = BigInt(value)
  }
}
