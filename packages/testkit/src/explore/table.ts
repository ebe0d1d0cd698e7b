import type { ExploredKey } from './explored-core.js'

/** More policies than one schedule makes; the world checks that no other block is touched. */
const RECORDS_USED = 16
/** More descriptors than one schedule opens at once. */
const DESCRIPTORS_USED = 8
const COUNTERS = ['KEYS', 'EVICTIONS'] as const
/** The two highest bits of a state word, as a signed number's: a mark, or a ticket of a swap over several words. */
const TICKET = -1
const MARK = -2

/** What the table is read from. */
export interface TableParts {
  readonly words: Int32Array
  readonly constant: (name: string) => number
  readonly entries: number
  /** Bytes of what keys have beside their entries. */
  readonly extensions: readonly [number, number] | undefined
}

/** The explored memory read from outside: entries, counters, and where they lie. Knows the layout, nothing of the protocol. */
export class Table {
  readonly from: number
  readonly to: number
  /** Bytes of the policy blocks. */
  readonly blocks: [number, number]
  readonly descriptors: readonly [number, number]
  readonly extensions: readonly [number, number] | undefined
  private readonly words: Int32Array
  private readonly descriptorWords: number
  private readonly first: number
  private readonly stride: number
  private readonly entries: number
  private readonly gates: number
  private readonly gateCount: number
  private readonly keysAt: number
  private readonly evictionsAt: number
  private readonly takeoverHighAt: number

  constructor({ words, constant, entries, extensions }: TableParts) {
    this.words = words
    this.entries = entries
    this.extensions = extensions
    this.descriptors = [constant('DESCRIPTORS'), constant('DESCRIPTORS') + DESCRIPTORS_USED * constant('DESCRIPTOR_SIZE')]
    this.descriptorWords = constant('DESCRIPTOR_SIZE') / 4
    this.from = constant('TABLE')
    this.to = this.from + entries * constant('ENTRY_SIZE')
    this.blocks = [constant('RECORDS'), constant('RECORDS') + RECORDS_USED * constant('RECORD_SIZE')]
    this.gates = constant('BAN_FILTER')
    this.gateCount = Number(constant('BAN_FILTER_SLOTS'))
    this.first = this.from / 4
    this.stride = constant('ENTRY_SIZE') / 4
    const [keysAt, evictionsAt] = COUNTERS.map((name) => constant(name) / 4) as [number, number]
    this.keysAt = keysAt
    this.evictionsAt = evictionsAt
    this.takeoverHighAt = constant('TAKEOVER_HIGH') / 4
  }

  get keys(): number {
    return this.words[this.keysAt] as number
  }

  get evictions(): number {
    return this.evictionsIn(this.words)
  }

  evictionsIn(words: Int32Array): number {
    return words[this.evictionsAt] as number
  }

  takeoverHighIn(words: Int32Array): number {
    return (words[this.takeoverHighAt + 1] as number) * 2 ** 32 + ((words[this.takeoverHighAt] as number) >>> 0)
  }

  /** Bytes of the gate of a key's block. */
  gateOf({ low, high }: ExploredKey): [number, number] {
    const fingerprint = high * 65_536 + (low & 0xfffe)
    const at = this.gates + ((fingerprint / 2) % this.gateCount) * 8
    return [at, at + 8]
  }

  /** What no table may look like: undefined when all is well. `mayBeUnfinished`: a thread was stopped for good. */
  fault(mayBeUnfinished: boolean): string | undefined {
    const { words, first, stride, entries } = this
    let known = 0
    for (let i = 0; i < entries; i++) {
      const at = first + i * stride
      const stateHigh = words[at + 3] as number
      if (stateHigh < 0 && !mayBeUnfinished) return stateHigh >> 30 === MARK ? 'a mark was left behind' : 'a ticket was left behind'
      const identityHigh = words[at + 1] as number
      const identityLow = (words[at] as number) >>> 16
      if (stateHigh >> 30 === MARK || (identityHigh === 0 && identityLow === 0) || (stateHigh === 0 && words[at + 2] === 0)) continue
      known++
      for (let j = i + 1; j < entries; j++) {
        const other = first + j * stride
        if ((words[other + 3] as number) >> 30 === MARK || words[other + 1] !== identityHigh) continue
        if ((words[other] as number) >>> 16 === identityLow) return 'a key lives in two entries'
      }
    }
    if (mayBeUnfinished) return undefined
    return known === this.keys ? this.unfinished() : `${this.keys} keys are counted, ${known} are there`
  }

  /** What a swap over several words left behind. */
  private unfinished(): string | undefined {
    const { words, descriptors, extensions } = this
    for (let at = descriptors[0] / 4; at < descriptors[1] / 4; at += this.descriptorWords) {
      if (((words[at] as number) & 3) !== 0) return 'a descriptor was left open'
    }
    if (extensions === undefined) return undefined
    for (let at = extensions[0] / 4 + 1; at < extensions[1] / 4; at += 2) {
      if ((words[at] as number) >> 30 === TICKET) return 'a ticket was left behind'
    }
    return undefined
  }
}
