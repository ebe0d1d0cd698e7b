import { StoreError } from '../errors.js'
import { CALENDAR_UNITS, type Calendar, calendarOf } from '../policy/calendar.js'
import { checkedPolicy } from '../policy/checked-policy.js'
import type { Algorithm, Policy } from '../policy/policy.js'
import { ENCODINGS, type Encoding, numbersOf, type PolicyNumbers } from '../policy/policy-numbers.js'
import { COUNTER_BYTES, ENTRIES_PER_LINE } from './core-memory.js'
import type { CoreNumber, OpenCore } from './open-core.js'

// The part of a policy record that only JavaScript reads: numbers, then the name and the time zone as text.
const LIMIT = 0
const WINDOW_MS = 8
const BURST = 16
const AREA_BYTES = 24
const SPARE_ADDRESS = 32
const SPARE_BYTES = 40
const ALGORITHM = 48
const CALENDAR_UNIT = 49
const TEXT = 50

const ALGORITHMS: readonly Algorithm[] = ['token-bucket', 'gcra', 'fixed-window', 'sliding-window', 'sliding-log', 'concurrency']
const UTC_DAY: Calendar = { unit: 'day', timeZone: 'UTC' }

/** The numbers of a record that the core reads, by their names there. */
const FIELDS = [
  ['RECORD_UNITS_PER_US', 'unitsPerUs'],
  ['RECORD_UNITS_PER_TOKEN', 'unitsPerToken'],
  ['RECORD_CAPACITY', 'capacity'],
  ['RECORD_WINDOW_US', 'windowUs'],
  ['RECORD_COUNT_BITS', 'countBits'],
  ['RECORD_NUMBER_BITS', 'numberBits'],
  ['RECORD_TICK_US', 'tickUs'],
  ['RECORD_SLOTS', 'slots'],
  ['RECORD_STRIDE', 'stride'],
  ['RECORD_CALENDAR', 'calendar'],
] as const satisfies readonly (readonly [CoreNumber, keyof PolicyNumbers])[]

/**
 * A change to another policy in two steps: prepare, then publish. Where several policies change together, every step that can fail runs
 * before the first change takes effect.
 */
export class PolicyChange {
  private readonly open: OpenCore
  private readonly policy: Policy
  private readonly areas: ExtensionAreas

  /** @throws {PolicyError} `RANGE_UNSUPPORTED` when the memory has no room for what its keys need. */
  constructor(open: OpenCore, policy: Policy) {
    this.open = open
    this.policy = policy
    this.areas = new ExtensionAreas(open)
    open.look()
    this.placed()
  }

  /**
   * Writes the policy into its own record and puts it in force for all threads from `nowUs` on.
   *
   * @throws {StoreError} `CONTENTION`
   */
  publish(nowUs: number): void {
    const { core } = this.open
    for (;;) {
      core.look()
      // Another thread may put a policy in force meanwhile whose slots lie elsewhere.
      const outcome = this.proposed(nowUs)
      if (outcome === this.open.constant('IN_FORCE')) return
      if (outcome === this.open.constant('GIVEN_UP')) {
        core.giveUp()
        throw new StoreError('CONTENTION', 'keys could not be migrated to the new policy, which is not in force: call update() again')
      }
    }
  }

  private proposed(nowUs: number): number {
    const { open } = this
    // Areas are counted out of the policy in force now, and of no other with the same ones.
    const seenEpoch = open.field(open.core.policyRecord(), 'RECORD_EPOCH')
    const { numbers, areas, before } = this.placed()
    const record = open.core.propose()
    for (const [name, key] of FIELDS) open.setField(record, name, numbers[key])
    open.setField(record, 'RECORD_ENCODING', open.constant(numbers.encoding))
    open.setField(record, 'RECORD_EXTENSIONS', areas.current.address)
    describe(open.description(record), this.policy, areas)
    return open.core.update(record, nowUs, before === undefined ? 0 : seenEpoch)
  }

  /** The policy's numbers, and where its extensions are: with those before it, unless they need more room or are written in another way. */
  private placed(): Placed & { readonly before: Placed | undefined } {
    const before = placedIn(this.open, this.open.core.policyRecord())
    const numbers = numbersOf(this.policy, before?.numbers)
    if (before === undefined) return { numbers, areas: firstAreas(this.open, numbers.stride), before }
    if (numbers.stride === 0 || isLaidOutAlike(numbers, before.numbers)) return { numbers, areas: before.areas, before }
    return { numbers, areas: this.areas.moved(before.areas, numbers.stride, before.numbers.stride > 0), before }
  }
}

/** A policy's numbers, and where its extensions are. */
interface Placed {
  readonly numbers: PolicyNumbers
  readonly areas: Areas
}

/** Undefined if the record has never held a policy. */
function placedIn(open: OpenCore, record: number): Placed | undefined {
  if (open.field(record, 'RECORD_CAPACITY') === 0) return undefined
  const view = open.description(record)
  const areas = {
    current: { address: open.field(record, 'RECORD_EXTENSIONS'), bytes: view.getFloat64(AREA_BYTES, true) },
    spare: { address: view.getFloat64(SPARE_ADDRESS, true), bytes: view.getFloat64(SPARE_BYTES, true) },
  }
  return { numbers: numbersIn(open, record), areas }
}

function isLaidOutAlike(one: PolicyNumbers, other: PolicyNumbers): boolean {
  return one.stride === other.stride && one.countBits === other.countBits && (one.encoding !== 'LOG' || one.tickUs === other.tickUs)
}

/** The policy in force as this thread's core last read it; undefined if its record was reused in the meantime. */
export function publishedPolicy(open: OpenCore): Policy | undefined {
  const policy = described(open.description(open.core.policyRecord()))
  return open.core.isWhole() ? checkedPolicy(policy) : undefined
}

/** The calendar of the policy in a record. A record that is being reused may hold any; counts made with it are discarded. */
export function calendarIn(open: OpenCore, record: number): Calendar {
  const { calendar } = described(open.description(record))
  try {
    return calendar === undefined ? UTC_DAY : calendarOf(calendar.unit, calendar.timeZone)
  } catch {
    return UTC_DAY
  }
}

function numbersIn(open: OpenCore, record: number): PolicyNumbers {
  const numbers = Object.fromEntries(FIELDS.map(([name, key]) => [key, open.field(record, name)]))
  return { ...(numbers as unknown as PolicyNumbers), encoding: encodingIn(open, record) }
}

function encodingIn(open: OpenCore, record: number): Encoding {
  const encoding = open.field(record, 'RECORD_ENCODING')
  return ENCODINGS.find((name) => open.constant(name) === encoding) ?? 'ARRIVAL'
}

function describe(view: DataView, policy: Policy, { current, spare }: Areas): void {
  const { algorithm, limit, windowMs, burst, name, calendar } = policy
  view.setFloat64(LIMIT, limit, true)
  view.setFloat64(WINDOW_MS, windowMs, true)
  view.setFloat64(BURST, burst, true)
  view.setFloat64(AREA_BYTES, current.bytes, true)
  view.setFloat64(SPARE_ADDRESS, spare.address, true)
  view.setFloat64(SPARE_BYTES, spare.bytes, true)
  view.setUint8(ALGORITHM, ALGORITHMS.indexOf(algorithm))
  view.setUint8(CALENDAR_UNIT, calendar === undefined ? 0 : 1 + CALENDAR_UNITS.indexOf(calendar.unit))
  writeText(view, writeText(view, TEXT, name), calendar?.timeZone ?? '')
}

function described(view: DataView): Partial<Policy> {
  const [name, end] = readText(view, TEXT)
  const algorithm = ALGORITHMS[view.getUint8(ALGORITHM)]
  const unit = CALENDAR_UNITS[view.getUint8(CALENDAR_UNIT) - 1]
  return {
    ...(algorithm === undefined ? {} : { algorithm }),
    limit: view.getFloat64(LIMIT, true),
    windowMs: view.getFloat64(WINDOW_MS, true),
    burst: view.getFloat64(BURST, true),
    name,
    ...(unit === undefined ? {} : { calendar: { unit, timeZone: readText(view, end)[0] } }),
  }
}

/** One byte of length, then the characters, all ASCII. Returns the place behind. */
function writeText(view: DataView, at: number, text: string): number {
  view.setUint8(at, text.length)
  for (let i = 0; i < text.length; i++) view.setUint8(at + 1 + i, text.charCodeAt(i))
  return at + 1 + text.length
}

function readText(view: DataView, at: number): [string, number] {
  const length = view.getUint8(at)
  const letters = Array.from({ length }, (_, i) => view.getUint8(at + 1 + i))
  return [String.fromCharCode(...letters), at + 1 + length]
}

/** A range of the memory that holds the extensions of all entries of the table. */
export interface Area {
  readonly address: number
  readonly bytes: number
}

/** The area in use, or the last one used if the policy needs none; and a spare one for the next change. */
export interface Areas {
  readonly current: Area
  readonly spare: Area
}

const NONE: Area = { address: 0, bytes: 0 }

/** The areas of the first policy: the memory was laid out for it. */
function firstAreas(open: OpenCore, stride: number): Areas {
  return { current: { address: open.firstExtensions(), bytes: bytesFor(open, stride) }, spare: NONE }
}

/**
 * The areas after a change to a policy with another layout: the spare area if it has room, otherwise new memory. Two policies that
 * alternate therefore allocate once.
 */
export class ExtensionAreas {
  private readonly open: OpenCore
  /** Grown for a change that failed because another thread finished first. */
  private grown = NONE

  constructor(open: OpenCore) {
    this.open = open
  }

  /**
   * @param isInUse whether the current area holds anything that has to stay readable.
   * @throws {PolicyError} `RANGE_UNSUPPORTED` when there is no more memory.
   */
  moved({ current, spare }: Areas, stride: number, isInUse: boolean): Areas {
    const bytes = bytesFor(this.open, stride)
    if (!isInUse && current.bytes >= bytes) return { current, spare }
    // The spare area has no readers once every state word belongs to a later policy.
    if (spare.bytes >= bytes && this.open.core.migrateAll()) return { current: spare, spare: current }
    if (this.grown.bytes < bytes) this.grown = { address: this.open.moreExtensions(stride), bytes }
    return { current: this.grown, spare: current.bytes >= spare.bytes ? current : spare }
  }
}

function bytesFor(open: OpenCore, stride: number): number {
  return open.entries * stride
}

/**
 * Bytes of the table parts that hold no key yet, with their extensions, and of overflow counters before their first use. They occupy
 * addresses but no memory.
 */
export function untouchedBytes(open: OpenCore): number {
  const word = (name: CoreNumber): number =>
    Number(Atomics.load(new BigInt64Array(open.memory.buffer), (open.section + open.constant(name)) / 8))
  const counters = word('OVERFLOWS') === 0 ? word('OVERFLOW_COUNTER_COUNT') * COUNTER_BYTES : 0
  const [first, second, grown] = [word('FIRST_LINES'), word('SECOND_LINES'), word('GROWN')]
  if (first === 0 || grown === 2) return counters
  const lines = open.lines - first - (grown === 1 ? second : 0)
  const areas = placedIn(open, open.core.policyRecord())?.areas
  const beside = ((areas?.current.bytes ?? 0) + (areas?.spare.bytes ?? 0)) / (open.lines * ENTRIES_PER_LINE)
  return counters + lines * (open.constant('LINE_SIZE') + ENTRIES_PER_LINE * beside)
}
