import { checkedHotKeys, TopLists } from '../decision/hot-keys.js'
import { createMemory, MOST_KEYS, sectionAt } from '../memory/core-memory.js'
import { randomSecret } from '../memory/fingerprint.js'
import { invalidHandle, isFounded } from '../memory/handle-check.js'
import { type CoreNumber, OpenCore } from '../memory/open-core.js'
import { checkInteger, checkOptions } from '../options/option-checks.js'
import { type Clock, checkClock, clockFromHandle, preciseClock } from '../time/clock.js'
import { LONGEST_NS } from './call-rate.js'
import { MemoryRateTable } from './memory-rate-table.js'
import type { RateTable, RateTableHandle } from './rate-table.js'
import { isTableHandle } from './table-handle.js'
import { restoreTable, type TableDescription, tableInSnapshot } from './table-snapshot.js'

/** What {@link createRateTable} takes. */
export interface RateTableOptions {
  /** Keys that always find room, in a table of that size; default 100,000, and this table grows to 1,600,000. */
  readonly maxKeys?: number
  /** How many keys each list of {@link RateTable.hotKeys} follows, 0 to 10,000; default 0. */
  readonly hotKeys?: number
  /** Default: the precise clock. */
  readonly clock?: Clock
}

const DEFAULT_MAX_KEYS = 100_000
const DEFAULT_GROW_TO = 1_600_000
/** Units of call-rate.ts in the core. */
const UNITS_PER_US = 2_000
const UNITS_PER_TOKEN = 2
/** No call goes by it. */
const CAPACITY = 2 ** 52
/** A record of the core that has numbers of rates, which come with the calls, except for the longest debt. */
const RECORD: readonly (readonly [CoreNumber, number])[] = [
  ['RECORD_UNITS_PER_US', UNITS_PER_US],
  ['RECORD_UNITS_PER_TOKEN', UNITS_PER_TOKEN],
  ['RECORD_CAPACITY', CAPACITY],
  ['RECORD_WINDOW_US', LONGEST_NS / 1000],
  ['RECORD_TICK_US', 1],
]
const NO_HOST = { policyChanged() {}, calendarWindowStart: () => 0, calendarWindowEnd: () => 0 }

/**
 * A table of keys whose rate comes with each call, as in redis-cell's `CL.THROTTLE`. Its memory is bounded; a key that may be being denied is
 * never evicted, and a new key without room is denied.
 *
 * @throws {PolicyError} on an unknown option or one out of range.
 * @example
 * const table = createRateTable()
 * table.throttle('user:42', { maxBurst: 15, count: 30, periodS: 60 }) // 16 at once, then 30 a minute
 */
export function createRateTable(options: RateTableOptions = {}): RateTable {
  const checked = checkOptions(options, ['maxKeys', 'hotKeys', 'clock'], '{ maxKeys: 100_000 }', 'createRateTable()')
  const { maxKeys = DEFAULT_MAX_KEYS, hotKeys, clock = preciseClock() } = checked
  const growTo = checked.maxKeys ?? DEFAULT_GROW_TO
  checkInteger('maxKeys', maxKeys, 1, MOST_KEYS)
  checkClock(clock)
  const secret = randomSecret()
  return new MemoryRateTable(
    newTable({ maxKeys, growTo }, clock),
    clock,
    secret,
    { maxKeys, growTo },
    new TopLists(checkedHotKeys(hotKeys)),
  )
}

/**
 * The table of a snapshot, in its own memory: what each key owed, less what has flowed back since.
 *
 * @throws {PolicyError} `SNAPSHOT_INVALID`
 * @example
 * const table = restoreRateTable(await readFile('table.snapshot'))
 */
export function restoreRateTable(snapshot: Uint8Array, options: Pick<RateTableOptions, 'clock' | 'hotKeys'> = {}): RateTable {
  const checked = checkOptions(options, ['clock', 'hotKeys'], '{ clock }', 'restoreRateTable()')
  const { clock = preciseClock() } = checked
  checkClock(clock)
  const { description, contents } = tableInSnapshot(snapshot)
  const { maxKeys, growTo, secret } = description
  checkInteger('maxKeys', maxKeys, 1, MOST_KEYS)
  checkInteger('growTo', growTo, maxKeys, MOST_KEYS)
  const opened = newTable({ maxKeys, growTo }, clock)
  restoreTable(opened, contents, Math.round(clock.nowMs() * 1000))
  return new MemoryRateTable(opened, clock, secret, { maxKeys, growTo }, new TopLists(checkedHotKeys(checked.hotKeys)))
}

function newTable({ maxKeys, growTo }: Pick<TableDescription, 'maxKeys' | 'growTo'>, clock: Clock): OpenCore {
  const section = sectionAt(0, { maxKeys, growTo, stride: 0 })
  const opened = new OpenCore(createMemory(section.end), section.address, NO_HOST)
  const { core } = opened
  core.create(section.address, section.lines, false)
  const [first = 0, second = 0] = section.parts
  if (second > 0) core.addParts(first, second)
  const record = core.propose()
  for (const [field, value] of RECORD) opened.setField(record, field, value)
  opened.setField(record, 'RECORD_ENCODING', opened.constant('ARRIVAL'))
  core.update(record, Math.round(clock.nowMs() * 1000), 0)
  return opened
}

/**
 * In a worker thread: the table of a handle, with the same keys and time. A custom clock has to be passed again.
 *
 * @throws {PolicyError} `HANDLE_INVALID`, `CLOCK_INVALID` when a custom clock is missing.
 */
export function attachRateTable(handle: RateTableHandle, options: Pick<RateTableOptions, 'clock' | 'hotKeys'> = {}): RateTable {
  const checked = checkOptions(options, ['clock', 'hotKeys'], '{ clock }', 'attachRateTable()')
  const posted: unknown = handle
  if (!isTableHandle(posted)) throw invalidHandle(handle)
  const { memory, section, secret, maxKeys, growTo } = posted
  const clock = checked.clock ?? clockFromHandle(posted.clock)
  checkClock(clock)
  const opened = new OpenCore(memory, section, NO_HOST)
  if (!isFounded(opened)) throw invalidHandle(handle)
  opened.core.attach(section)
  return new MemoryRateTable(opened, clock, secret, { maxKeys, growTo }, new TopLists(checkedHotKeys(checked.hotKeys)))
}
