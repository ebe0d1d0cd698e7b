import { load } from "./atomics"
import {
  BLOCK_BASE_US, BLOCK_COMPANIONS, BLOCK_COUNT_BITS, BLOCK_SLOTS, BLOCK_STRIDE, BLOCK_TICK_US, ENTRY_SIZE, STATE,
} from "./memory-map"
import { baseUs, companions, countBits, epoch, floorUs, slotBytes, slots, stride, tickUs } from "./policy"
import { field } from "./policy-block"
import { bothSwapped } from "./replace"
import * as ring from "./ring"
import * as several from "./several"
import { settled } from "./several"
import { tableAddress } from "./table"
import { valueOf, withValue } from "./words"

// When a policy needs more slots, or other ones, its companions lie elsewhere in the memory, and each key's are copied there before
// its state word is written for the new policy. The state word of the old policy stands until then and never comes back, so
// that all who copy copy the same; a slot is written only where it still is what it was before that word was seen once more.

/** Whether the companions of a policy lie elsewhere, or are written in another way, than those of the policy in force. */
export function liesElsewhere(block: usize): bool {
  return <usize>field(block, BLOCK_COMPANIONS) != companions || <usize>field(block, BLOCK_STRIDE) != stride
    || field(block, BLOCK_COUNT_BITS) != countBits || field(block, BLOCK_TICK_US) != tickUs
}

@inline function companionsIn(block: usize, entry: usize): usize {
  return <usize>field(block, BLOCK_COMPANIONS) + ((entry - tableAddress) / ENTRY_SIZE) * <usize>field(block, BLOCK_STRIDE)
}

/** Permits that are copied together. */
const PERMITS_AT_ONCE: i64 = 16

/**
 * Copies the permits of a key, each few together with a swap of the state word for itself: once the state is of the new policy, a
 * slot may be empty again that was empty before, and nobody may still fill it. False: its state is another one.
 */
export function copiedPermits(entry: usize, state: u64, from: usize): bool {
  const source = companionsIn(from, entry)
  const target = companions + ((entry - tableAddress) / ENTRY_SIZE) * stride
  const count = min<i64>(field(from, BLOCK_SLOTS), slots)
  for (let first: i64 = 0; first < count; first += PERMITS_AT_ONCE) {
    const descriptor = several.open()
    if (descriptor == 0) return false
    several.add(descriptor, entry + STATE, state, state)
    for (let i = first; i < min<i64>(first + PERMITS_AT_ONCE, count); i++) {
      const permit = settled(source + <usize>i * 8)
      const there = settled(target + <usize>i * 8)
      if (there != permit) several.add(descriptor, target + <usize>i * 8, there, permit)
    }
    if (!several.commit(descriptor)) return false
  }
  return true
}

/** Copies a log with what still counts of it, and writes the state word for the policy in force. False: once more. */
export function movedLog(entry: usize, state: u64, from: usize): bool {
  const source = companionsIn(from, entry)
  const fromBits = <u64>field(from, BLOCK_COUNT_BITS)
  const costMask = (<u64>1 << fromBits) - 1
  const fromTickUs = field(from, BLOCK_TICK_US)
  const lastTick = field(from, BLOCK_BASE_US) / fromTickUs + <i64>(valueOf(state) >> fromBits)
  const total = valueOf(state) & costMask
  const reachUs = lastTick * fromTickUs - floorUs

  const target = ring.headerOf(entry)
  ring.readRingAt(source, field(from, BLOCK_SLOTS))
  const fromHeader = ring.header
  const perToken = slotBytes == 4
  let first = ring.held
  while (first > 0 && reachUs > 0 && ring.ageIn(first - 1, lastTick, fromBits) * fromTickUs < reachUs) first--
  if (!perToken && !ring.whole && first == 0 && ring.held > 0) first = 1
  const over = reachUs <= 0 ? total : <u64>ring.costUpToIn(first - 1, fromBits)

  let copied: i64 = 0
  let cost: i64 = 0
  for (let i = first; i < ring.held; i++) {
    cost = <i64>((<u64>ring.costUpToIn(i, fromBits) - over) & costMask)
    const tick = upTo((lastTick - ring.ageIn(i, lastTick, fromBits)) * fromTickUs)
    if (!ring.fill(entry, state, target + 8 + <usize>(copied * slotBytes), ring.slotOf(tick, cost))) return false
    copied++
  }
  const seen = settled(target)
  if (load(entry + STATE) != state || settled(source) != fromHeader) return false
  ring.takeHeader(fromHeader)
  const next = ring.headerWith(max<i64>(copied - 1, 0), copied, cost, !perToken || copied == 0, true)
  const value = (<u64>max<i64>(upTo(lastTick * fromTickUs) - baseUs / tickUs, 0) << <u64>countBits) | ((total - over) & costMask)
  return bothSwapped(entry + STATE, state, withValue(state, epoch, value), target, seen, next)
}

/** A time in ticks of the policy in force, rounded up. */
@inline function upTo(us: i64): i64 {
  return (us + tickUs - 1) / tickUs
}
