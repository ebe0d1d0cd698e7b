import { COUNTER_BYTES, ENTRIES_PER_LINE } from './core-memory.js'
import type { OpenCore } from './open-core.js'
import { placedIn } from './policy-block.js'

/**
 * Bytes of the parts of a table that no key has come to yet, with what belongs to their keys, and of counters before the first use: they
 * take addresses and no memory.
 */
export function untouchedBytes(open: OpenCore): number {
  const word = (name: string): number =>
    Number(Atomics.load(new BigInt64Array(open.memory.buffer), (open.section + open.constant(name)) / 8))
  const counters = word('OVERFLOWS') === 0 ? word('OVERFLOW_COUNTER_COUNT') * COUNTER_BYTES : 0
  const [first, second, grown] = [word('FIRST_LINES'), word('SECOND_LINES'), word('GROWN')]
  if (first === 0 || grown === 2) return counters
  const lines = open.lines - first - (grown === 1 ? second : 0)
  const areas = placedIn(open, open.core.policyRecord())?.areas
  const beside = ((areas?.current.bytes ?? 0) + (areas?.spare.bytes ?? 0)) / (open.lines * ENTRIES_PER_LINE)
  return counters + lines * (open.constant('LINE_SIZE') + ENTRIES_PER_LINE * beside)
}
