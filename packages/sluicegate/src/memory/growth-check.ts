import type { OpenCore } from './open-core.js'
import type { SectionWords } from './section-words.js'
import { invalidSnapshot } from './snapshot.js'

const LAST_PART = 2
/** Words from here on would be taken for a mark or for a ticket of a swap. */
const FIRST_MARK = 1n << 62n
const MOST_LIMIT = 2 ** 53

/**
 * Looks over what a restored section says of the parts of its table, and of newcomers without room.
 *
 * @throws {PolicyError} `SNAPSHOT_INVALID`
 */
export function checkGrowth(open: OpenCore, layout: SectionWords, tableEnd: number): void {
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
