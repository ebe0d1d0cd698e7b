import { blockNumbers, type ExploredPolicy, RECORD_NUMBERS, type RecordNumbers } from './explored-policy.js'

/** Bytes of extensions that a policy may have, and for how many policies there is room. */
const AREA_BYTES = 256
const MOST_AREAS = 10

/** Numbers, and the address of the extensions. */
export type PlacedNumbers = RecordNumbers & { readonly extensions: number }

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
