import type { Policy } from '../../policy/policy.js'
import { numbersOf, type PolicyNumbers } from '../../policy/policy-numbers.js'
import type { OpenCore } from '../open-core.js'

// The numbers that the core adds to a policy record when it is published: see `publish` and `rangeOf` in assembly/policy/publish.ts.

const ARRIVAL_UNITS = 1n << 56n
const LONGEST_US = 1n << 54n
const MOST_APART = 4096n
/** No time and no count in a record is larger: all are exact in a double. */
const MOST = Number.MAX_SAFE_INTEGER
const MOST_EPOCH = 2 ** 30
const VALUE_BITS = 56
/** More than any policy needs. */
const MOST_SLOTS = 2 ** 17
/** The width of a cost in the header of a log. */
const MOST_COUNT_BITS = 21

/** Whether all numbers of a restored record are those that a core would have written for the policy. */
export function isRecordOf(open: OpenCore, record: number, policy: Policy, written: PolicyNumbers): boolean {
  return areNumbersOf(policy, written) && isPublished(open, record, written)
}

function areNumbersOf(policy: Policy, written: PolicyNumbers): boolean {
  // A log or a semaphore may have kept more room than it needs; then its policy still fits there, and moves nothing.
  const expected = numbersOf(policy, written)
  return isLaidOut(written) && (Object.keys(expected) as (keyof PolicyNumbers)[]).every((name) => expected[name] === written[name])
}

/** Whether the room of a key is as large as its slots need; where a policy keeps the room of another, that may be any. */
function isLaidOut({ form, countBits, numberBits, slots, slotBytes, stride }: PolicyNumbers): boolean {
  if (form === 'CONCURRENCY') return slots >= 1 && slots <= MOST_SLOTS && stride === 8 * slots
  if (form !== 'LOG') return true
  const areSlots = slots >= 1 && slots <= MOST_SLOTS && stride === 8 + 8 * Math.ceil((slots * slotBytes) / 8)
  return areSlots && countBits >= 1 && countBits <= MOST_COUNT_BITS && countBits + numberBits === VALUE_BITS
}

function isPublished(open: OpenCore, record: number, { form, numberBits, unitsPerUs, tickUs }: PolicyNumbers): boolean {
  const field = (name: string): number => open.field(record, name)
  // A number that is no encoding would be read as the first.
  if (field('RECORD_ENCODING') !== open.constant(form)) return false
  const [sinceUs, epoch, era] = ['RECORD_SINCE_US', 'RECORD_EPOCH', 'RECORD_ERA'].map(field) as [number, number, number]
  if (![sinceUs, epoch, era].every((number) => Math.abs(number) <= MOST) || era < 0) return false
  if (epoch !== open.epoch() || epoch > MOST_EPOCH || field('RECORD_KEEPS_DEBT') >>> 1 !== 0) return false
  const rangeUs = rangeOf(numberBits, unitsPerUs, tickUs)
  const tick = BigInt(Math.max(tickUs, 1))
  const nowUs = BigInt(sinceUs)
  const apart = BigInt(epoch) % larger(smaller(MOST_APART, rangeUs / 32n / tick), 1n)
  const baseUs = wholeTicks(nowUs - rangeUs / 2n, tick) - apart * tick
  // These may be further off than a double can tell.
  const exactly = (name: string): bigint => new DataView(open.memory.buffer, record).getBigInt64(open.constant(name), true)
  return exactly('RECORD_BASE_US') === baseUs && exactly('RECORD_REBASE_AT_US') === nowUs + rangeUs / 4n
}

/** For how many microseconds a time base lasts. */
export function rangeOf(numberBits: number, unitsPerUs: number, tickUs: number): bigint {
  if (numberBits === 0) return ARRIVAL_UNITS / BigInt(unitsPerUs)
  const bits = BigInt(numberBits)
  const tick = BigInt(tickUs)
  return tick >= LONGEST_US >> bits ? LONGEST_US - (LONGEST_US % tick) : tick << bits
}

function wholeTicks(us: bigint, tick: bigint): bigint {
  const into = us % tick
  return us - (into < 0n ? into + tick : into)
}

function smaller(one: bigint, other: bigint): bigint {
  return one < other ? one : other
}

function larger(one: bigint, other: bigint): bigint {
  return one > other ? one : other
}
