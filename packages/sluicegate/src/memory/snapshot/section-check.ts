import { isInteger } from '../../options/option-checks.js'
import type { Algorithm, Policy } from '../../policy/policy.js'
import { numbersOf } from '../../policy/policy-numbers.js'
import type { SectionOptions } from '../core-memory.js'
import { ENTRIES_PER_LINE } from '../core-memory.js'
import { type CoreHost, OpenCore } from '../open-core.js'
import { type Area, placedIn, publishedPolicy } from '../policy-record.js'
import { SectionWords } from './section-words.js'
import { invalidSnapshot } from './snapshot.js'
import { isRecordOf, occupiedEntries } from './table-check.js'

/** As `create` in assembly/index.ts writes it. */
const LONG_AGO = -(1n << 62n)
const WORD_BYTES = 8
const MOST_US = BigInt(Number.MAX_SAFE_INTEGER)
const NO_HOST: CoreHost = { policyChanged() {}, calendarWindowStart: () => 0, calendarWindowEnd: () => 0 }

/** What a snapshot says of a section. */
interface DescribedSection {
  readonly address: number
  /** Where it has to be over. */
  readonly end: number
  readonly algorithm: Algorithm
  readonly options: SectionOptions
}

/** A section that was looked over. */
export interface CheckedSection {
  /** In force there. */
  readonly policy: Policy
  /** All that it reads and writes; no two areas of a memory may share a byte. */
  readonly areas: readonly Area[]
}

/**
 * Looks over one section of a restored memory that no limiter uses yet: its table, the policy in force and what that needs have to
 * lie within the memory, and every word by which the core finds its way has to be one that a core could have left: a checksum tells damage,
 * not its author. How much each key has spent is taken as it is. What only running threads know begins again.
 *
 * @throws {PolicyError} `SNAPSHOT_INVALID`
 */
export function checkSection(memory: WebAssembly.Memory, { address, end, algorithm, options }: DescribedSection): CheckedSection {
  const open = new OpenCore(memory, address, NO_HOST)
  const layout = new SectionWords(open)
  const tableEnd = layout.at('DESCRIPTORS') < end && layout.hasLines() ? layout.tableEnd(open.lines) : Number.POSITIVE_INFINITY
  if (tableEnd > end) throw invalidSnapshot('has no table')
  checkGrowth(open, layout, tableEnd)
  const record = recordInForce(open, layout)
  forgetThreads(memory, layout, record)
  layout.noteOptions(options)
  const policy = policyIn(open)
  const placed = placedIn(open, record)
  if (policy?.algorithm !== algorithm || placed === undefined || numbersOf(policy).encoding !== placed.numbers.encoding) {
    throw invalidSnapshot('has no policy in force')
  }
  const { current, spare } = placed.areas
  const isRoom = current.bytes >= open.lines * ENTRIES_PER_LINE * placed.numbers.stride
  // Of an area without room the place counts for nothing, but it is read: it has to be one.
  const isPlaced = [current, spare].every(
    ({ address: at, bytes }) =>
      (bytes === 0 && isInteger(at, 0, memory.buffer.byteLength)) ||
      (at % WORD_BYTES === 0 && bytes % WORD_BYTES === 0 && at >= tableEnd && at + bytes <= memory.buffer.byteLength),
  )
  const counters = layout.sharedCounters
  const areas = [{ address, bytes: tableEnd - address }, current, spare, { address: counters.address, bytes: counters.count * WORD_BYTES }]
  if (!isRoom || !isPlaced) throw invalidSnapshot('has keys without what belongs to them')
  if (!isRecordOf(open, record, policy, placed.numbers)) throw invalidSnapshot('has a policy whose numbers do not fit it')
  const epoch = open.epoch()
  const table = { memory, address: layout.at('TABLE'), end: tableEnd, epoch, numbers: placed.numbers, extensions: current.address }
  const occupied = areTimes(memory, layout) ? occupiedEntries(table) : undefined
  if (occupied === undefined) throw invalidSnapshot('has keys that no limiter could have left')
  new Uint8Array(memory.buffer, spare.address, spare.bytes).fill(0)
  layout.noteTable(occupied, epoch)
  return { policy, areas }
}

/** Whether the times that stand for all keys are times, or none. */
function areTimes(memory: WebAssembly.Memory, layout: SectionWords): boolean {
  const words = new BigInt64Array(memory.buffer)
  return ['BANNED_UNTIL', 'TAKEOVER_HIGH'].every((name) => {
    const us = words[layout.at(name) / 8] as bigint
    return us === LONG_AGO || (us <= MOST_US && us >= -MOST_US)
  })
}

/** The record of the policy in force, which says itself that it is the one. */
function recordInForce(open: OpenCore, layout: SectionWords): number {
  const halves = new Uint32Array(open.memory.buffer)
  const reference = halves[layout.at('EPOCH') / 4] as number
  const record = layout.recordOf(reference)
  if (open.epoch() < 1 || halves[record / 4] !== reference) throw invalidSnapshot('has no policy in force')
  return record
}

function forgetThreads(memory: WebAssembly.Memory, layout: SectionWords, record: number): void {
  const words = new BigUint64Array(memory.buffer)
  const clear = (from: number, to: number): unknown => words.fill(0n, from / 8, to / 8)
  clear(layout.at('RELEASED'), record)
  clear(record + layout.recordBytes, layout.at('BAN_FILTER'))
  clear(layout.at('DESCRIPTORS'), layout.at('TABLE'))
}

function policyIn(open: OpenCore): Policy | undefined {
  try {
    open.core.attach(open.section)
    return publishedPolicy(open)
  } catch {
    // A field that no policy has; or a zero by which the core would divide.
    return undefined
  }
}

const LAST_PART = 2
/** Words from here on would be taken for a mark or for a reference of a swap. */
const FIRST_MARK = 1n << 62n
const MOST_LIMIT = 2 ** 53

/**
 * Looks over what a restored section says of the parts of its table, and of new keys without room.
 *
 * @throws {PolicyError} `SNAPSHOT_INVALID`
 */
function checkGrowth(open: OpenCore, layout: SectionWords, tableEnd: number): void {
  const words = new BigUint64Array(open.memory.buffer)
  const word = (name: string): number => Number(words[layout.at(name) / 8])
  const [first, second, grown] = [word('FIRST_LINES'), word('SECOND_LINES'), word('GROWN')]
  const areParts = first === 0 ? second === 0 : second > 0 && first + second <= open.lines
  if (!areParts || grown > LAST_PART) throw invalidSnapshot('has a table in parts that do not fit')

  const { address, count } = layout.sharedCounters
  const [limit, windowUs] = [word('OVERFLOW_LIMIT'), word('OVERFLOW_WINDOW_US')]
  const areThere = address >= tableEnd && address % 8 === 0 && address + count * 8 <= open.memory.buffer.byteLength
  const isBudget = limit >= 1 && limit <= MOST_LIMIT && windowUs <= MOST_LIMIT / 256
  const counters = count === 0 || !areThere ? [] : words.subarray(address / 8, address / 8 + count)
  const budget = words[layout.at('OVERFLOW_BUDGET') / 8] as bigint
  const areTimes = budget < FIRST_MARK && counters.every((time) => time < FIRST_MARK)
  if (count > 0 && !(areThere && isBudget && areTimes)) throw invalidSnapshot('has counters of newcomers that do not fit')
}

/** @throws {PolicyError} `SNAPSHOT_INVALID` if two of the areas share a byte. */
export function checkApart(areas: readonly Area[]): void {
  let end = 0
  for (const { address, bytes } of areas.filter((area) => area.bytes > 0).sort((a, b) => a.address - b.address)) {
    if (address < end) throw invalidSnapshot('has keys without what belongs to them')
    end = address + bytes
  }
}
