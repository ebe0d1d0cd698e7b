import type { Calendar } from './calendar.js'
import { checkedPolicy } from './checked-policy.js'
import type { OpenCore } from './open-core.js'
import type { Algorithm, Policy } from './policy.js'
import { FORMS, type Form, numbersOf, type PolicyNumbers } from './policy-numbers.js'

// The part of a policy block that only JavaScript reads: three numbers, then the rest of the policy as text.
const LIMIT = 0
const WINDOW_MS = 8
const BURST = 16
const ALGORITHM = 24
const COUNTERS = 25
const SLOT_BYTES = 26
const CALENDAR_UNIT = 27
const TEXT = 28

const ALGORITHMS: readonly Algorithm[] = ['token-bucket', 'gcra', 'fixed-window', 'sliding-window', 'sliding-log', 'concurrency']
const CALENDAR_UNITS = [undefined, 'day', 'week', 'month', 'year'] as const

/** The numbers of a block that the core reads, by their names there. */
const FIELDS = {
  BLOCK_UNITS_PER_US: 'unitsPerUs',
  BLOCK_UNITS_PER_TOKEN: 'unitsPerToken',
  BLOCK_CAPACITY: 'capacity',
  BLOCK_WINDOW_US: 'windowUs',
  BLOCK_COUNT_BITS: 'countBits',
  BLOCK_NUMBER_BITS: 'numberBits',
  BLOCK_TICK_US: 'tickUs',
  BLOCK_SLOTS: 'slots',
  BLOCK_SLOT_BYTES: 'slotBytes',
  BLOCK_STRIDE: 'stride',
} as const satisfies Record<string, keyof PolicyNumbers>

/** Writes the policy into a block of its own and puts it in force for all threads from `nowUs` on. */
export function publishPolicy(open: OpenCore, policy: Policy, nowUs: number): void {
  // Another thread may put a policy in force meanwhile whose slots lie elsewhere.
  while (!isPublished(open, policy, nowUs));
}

function isPublished(open: OpenCore, policy: Policy, nowUs: number): boolean {
  open.core.look()
  const inForce = open.core.policyBlock()
  const before = open.field(inForce, 'BLOCK_CAPACITY') > 0 ? numbersIn(open, inForce) : undefined
  const numbers = numbersOf(policy, before)
  const companions = companionsFor(open, numbers, inForce, before)
  const block = open.core.propose()
  for (const [name, key] of Object.entries(FIELDS)) open.setField(block, name, numbers[key])
  open.setField(block, 'BLOCK_FORM', open.constant(numbers.form))
  open.setField(block, 'BLOCK_COMPANIONS', companions)
  describe(open.description(block), policy)
  return open.core.update(block, nowUs, open.field(inForce, 'BLOCK_COMPANIONS'), before?.slots ?? 0)
}

/** The policy in force, as this thread's core last saw it; undefined when its block was written anew meanwhile. */
export function publishedPolicy(open: OpenCore): Policy | undefined {
  const policy = described(open.description(open.core.policyBlock()))
  return open.core.isWhole() ? checkedPolicy(policy) : undefined
}

/** The calendar of the policy in a block. */
export function calendarIn(open: OpenCore, block: number): Calendar {
  return described(open.description(block)).calendar ?? { unit: 'day', timeZone: 'UTC' }
}

function numbersIn(open: OpenCore, block: number): PolicyNumbers {
  const numbers = Object.fromEntries(Object.entries(FIELDS).map(([name, key]) => [key, open.field(block, name)]))
  return { ...(numbers as unknown as PolicyNumbers), form: formIn(open, block) }
}

function formIn(open: OpenCore, block: number): Form {
  const form = open.field(block, 'BLOCK_FORM')
  return FORMS.find((name) => open.constant(name) === form) ?? 'ARRIVAL'
}

/** Where the companions of a policy lie: with those before it, unless they are more, or written in another way. */
function companionsFor(open: OpenCore, numbers: PolicyNumbers, inForce: number, before: PolicyNumbers | undefined): number {
  if (before === undefined) return open.firstCompanions()
  const { form, stride, countBits, tickUs } = numbers
  const other = form === 'LOG' && (countBits !== before.countBits || tickUs !== before.tickUs)
  return other || stride > before.stride ? open.moreCompanions(stride) : open.field(inForce, 'BLOCK_COMPANIONS')
}

function describe(view: DataView, { algorithm, limit, windowMs, burst, name, calendar, counters, slotBytes = 8 }: Policy): void {
  view.setFloat64(LIMIT, limit, true)
  view.setFloat64(WINDOW_MS, windowMs, true)
  view.setFloat64(BURST, burst, true)
  view.setUint8(ALGORITHM, ALGORITHMS.indexOf(algorithm))
  view.setUint8(COUNTERS, counters === 'compact' ? 1 : 0)
  view.setUint8(SLOT_BYTES, slotBytes)
  view.setUint8(CALENDAR_UNIT, CALENDAR_UNITS.indexOf(calendar?.unit))
  writeText(view, writeText(view, TEXT, name), calendar?.timeZone ?? '')
}

function described(view: DataView): Partial<Policy> {
  const [name, end] = readText(view, TEXT)
  const algorithm = ALGORITHMS[view.getUint8(ALGORITHM)]
  const unit = CALENDAR_UNITS[view.getUint8(CALENDAR_UNIT)]
  return {
    ...(algorithm === undefined ? {} : { algorithm }),
    limit: view.getFloat64(LIMIT, true),
    windowMs: view.getFloat64(WINDOW_MS, true),
    burst: view.getFloat64(BURST, true),
    name,
    ...(unit === undefined ? {} : { calendar: { unit, timeZone: readText(view, end)[0] } }),
    ...(view.getUint8(COUNTERS) === 1 ? { counters: 'compact' } : {}),
    ...(algorithm === 'sliding-log' ? { slotBytes: view.getUint8(SLOT_BYTES) === 4 ? 4 : 8 } : {}),
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
