import { ByteReader, ByteWriter } from '../memory/byte-codec.js'
import type { OpenCore } from '../memory/open-core.js'
import { describe, encodingIn, FIELDS } from '../memory/policy-record.js'
import { calendarOf } from '../policy/calendar.js'
import { checkedPolicy } from '../policy/checked-policy.js'
import { changedPolicy, type Policy } from '../policy/policy.js'
import { ENCODINGS, numbersOf } from '../policy/policy-numbers.js'

// The policy record by which the core reads a key's words, as a value of a store carries it:
//
//   limit | window, microseconds | burst | calendar, text | encoding 1 | the core's numbers |
//   time base 8 | when it moves 8 | in force since 8 | keeps debt 1 | era | generation
//
// A limiter under other numbers puts this record in force again, and then its own policy: so a key migrates as in memory.

const NAMES = Object.keys(FIELDS) as (keyof typeof FIELDS)[]
const TIMES = ['RECORD_BASE_US', 'RECORD_REBASE_AT_US', 'RECORD_SINCE_US'] as const
const WORD_BYTES = 8
/** Of the sequence number of the record before it, behind its own. */
const PREVIOUS = 8

/** What a section says. */
interface Recorded {
  readonly policy: Policy
  readonly encoding: number
  readonly numbers: readonly number[]
  readonly times: Uint8Array
  readonly keepsDebt: number
  readonly era: number
  readonly generation: number
}

/** Bytes of extensions, and where they are. */
export interface ExtensionArea {
  readonly address: number
  readonly bytes: number
}

/** The record in force, as bytes. */
export function sectionOf(open: OpenCore, policy: Policy): Uint8Array {
  const record = open.core.policyRecord()
  const writer = new ByteWriter()
  writer.raw(identityOf(policy))
  writer.byte(ENCODINGS.indexOf(encodingIn(open, record)))
  for (const name of NAMES) writer.whole(open.field(record, name))
  for (const name of TIMES) writer.raw(new Uint8Array(open.memory.buffer, record + open.constant(name), WORD_BYTES))
  writer.byte(open.field(record, 'RECORD_KEEPS_DEBT'))
  writer.whole(open.field(record, 'RECORD_ERA'))
  writer.whole(open.field(record, 'RECORD_GENERATION'))
  return writer.written()
}

/** Whether a section is of the policy with these numbers. */
export function isSectionOf(section: Uint8Array, identity: Uint8Array): boolean {
  return section.length >= identity.length && identity.every((byte, i) => byte === section[i])
}

/**
 * Puts the record of a section in force, in a core that holds no keys.
 *
 * @param areaFor room for extensions of that many bytes each.
 * @returns the bytes of a key's extension.
 * @throws {RangeError} when no limiter could have left it.
 */
export function putInForce(
  open: OpenCore,
  section: Uint8Array,
  like: Policy,
  areaFor: (stride: number) => readonly ExtensionArea[],
): number {
  const recorded = read(section, like)
  const stride = recorded.numbers[NAMES.indexOf('RECORD_STRIDE')] as number
  const [current, spare] = areaFor(stride) as [ExtensionArea, ExtensionArea]
  forgetRecords(open)
  const record = open.core.propose()
  const words = new BigUint64Array(open.memory.buffer)
  const at = (name: string): number => (open.section + open.constant(name)) / WORD_BYTES
  // The one thread of this core: no other reads a record while it is written.
  const sequence = BigInt.asUintN(32, words[record / WORD_BYTES] as bigint)
  new Uint8Array(open.memory.buffer, record, open.constant('RECORD_SIZE')).fill(0)
  words[record / WORD_BYTES] = sequence
  for (const [i, name] of NAMES.entries()) open.setField(record, name, recorded.numbers[i] as number)
  open.setField(record, 'RECORD_ENCODING', open.constant(ENCODINGS[recorded.encoding] as string))
  open.setField(record, 'RECORD_EXTENSIONS', current.address)
  for (const [i, name] of TIMES.entries()) {
    const time = recorded.times.subarray(i * WORD_BYTES, (i + 1) * WORD_BYTES)
    new Uint8Array(open.memory.buffer, record + open.constant(name), WORD_BYTES).set(time)
  }
  open.setField(record, 'RECORD_KEEPS_DEBT', recorded.keepsDebt)
  open.setField(record, 'RECORD_ERA', recorded.era)
  open.setField(record, 'RECORD_GENERATION', recorded.generation)
  open.setField(record, 'RECORD_EPOCH', 1)
  describe(open.description(record), recorded.policy, { current, spare })
  words[at('MIGRATED')] = 1n
  words[at('EPOCH')] = (1n << 32n) | sequence
  open.core.look()
  return stride
}

/** No word needs the records in force so far: there are no keys. */
function forgetRecords(open: OpenCore): void {
  const count = open.constant('RECORD_COUNT')
  let record = open.core.policyRecord()
  for (let i = 0; i < count && open.field(record, 'RECORD_EPOCH') !== 0; i++) {
    open.setField(record, 'RECORD_EPOCH', 0)
    const previous = Number(new DataView(open.memory.buffer, record).getBigUint64(PREVIOUS, true))
    record = open.section + open.constant('RECORDS') + (previous % count) * open.constant('RECORD_SIZE')
  }
}

function read(section: Uint8Array, like: Policy): Recorded {
  const reader = new ByteReader(section)
  const [limit, windowUs, burst] = [reader.whole(), reader.whole(), reader.whole()]
  const calendar = calendarFrom(reader.text())
  const encoding = reader.byte()
  const numbers = NAMES.map(() => reader.whole())
  const times = reader.raw(TIMES.length * WORD_BYTES)
  const [keepsDebt, era, generation] = [reader.byte(), reader.whole(), reader.whole()]
  if (!reader.isOver) throw new RangeError('has a record that is too long')
  const policy = checkedPolicy(
    changedPolicy(like, {
      limit,
      windowMs: windowUs / 1000,
      burst,
      ...(like.algorithm === 'fixed-window' ? { calendar: calendar as never } : {}),
    }),
  )
  checkNumbers(policy, encoding, numbers)
  return { policy, encoding, numbers, times, keepsDebt, era, generation }
}

/** Numbers are those of the policy, except that slots may be left from a larger one before it. */
function checkNumbers(policy: Policy, encoding: number, numbers: readonly number[]): void {
  const own = numbersOf(policy)
  const isFree = new Set<string>(['slots', 'stride', 'countBits', 'numberBits', 'tickUs'])
  const fits = NAMES.every((name, i) => numbers[i] === own[FIELDS[name]] || (own.stride > 0 && isFree.has(FIELDS[name])))
  const stride = numbers[NAMES.indexOf('RECORD_STRIDE')] as number
  const slots = numbers[NAMES.indexOf('RECORD_SLOTS')] as number
  const isRoom = stride >= slots * WORD_BYTES && slots >= own.slots && stride <= MOST_STRIDE && stride % WORD_BYTES === 0
  if (ENCODINGS[encoding] !== own.encoding || !fits || (own.stride > 0 && !isRoom)) {
    throw new RangeError('was written by another version of this library, with other numbers for its policy')
  }
}

/** Of the largest log. */
const MOST_STRIDE = 900_000

/** The numbers of a policy, as a section begins with them. */
export function identityOf({ limit, windowMs, burst, calendar }: Policy): Uint8Array {
  const writer = new ByteWriter()
  writer.whole(limit)
  writer.whole(Math.round(windowMs * 1000))
  writer.whole(burst)
  writer.text(calendar === undefined ? '' : `${calendar.unit} ${calendar.timeZone}`)
  return writer.written()
}

function calendarFrom(text: string): Policy['calendar'] {
  if (text === '') return undefined
  const [unit = '', timeZone = ''] = text.split(' ')
  return calendarOf(unit as never, timeZone)
}
