import { STATE } from "../memory-map"
import { load, swap } from "../atomics/atomics"
import { resolved } from "../atomics/kcas"
import { extensionOf } from "../policy/extension"
import { baseUs, capacity, slots, windowUs } from "../policy/policy"

// Concurrency: latest time of any change, in microseconds since the time base | turn 9. The permits are in the entry's extension,
// one in each slot:
//
//   permit     0 | expiry 47, in microseconds since the Unix epoch, modulo | serial 2 | cost 14
//
// A permit is given, renewed or released together with a new turn of the state word (kcas.ts). So a thread that has read the slots
// and finds the state unchanged knows that the slots are unchanged too. An expired permit is free for the next caller and cannot
// be renewed: for a key, time never runs back.

const TURN_BITS: u64 = 9
const TURN_MASK: u64 = (1 << 9) - 1
const COST_BITS: u64 = 14
const COST_MASK: u64 = (1 << 14) - 1
const SERIAL_MASK: u64 = 3
const SERIAL_BITS: u64 = 2
const EXPIRY_BITS: u64 = 47
const EXPIRY_MASK: u64 = (1 << 47) - 1
/** Longer than any permit. A permit that expired so long ago is cleared before its expiry could be read as a time in the future. */
const ANCIENT_US: i64 = 1 << 45

// The key last read.
let entryRead: usize = 0
let nowUs: i64 = 0
let readUs: i64 = 0
let used: i64 = 0
export let freeSlot: usize = 0
export let freeWord: u64 = 0
/** The permit in use that expires last, and the time it has left; 0 when none is in use. */
export let lastSlot: usize = 0
let lastLeftUs: i64 = 0
/** The time that the permit which expires first has left, and the cost of all that expire then. */
let firstLeftUs: i64 = 0
let firstCost: i64 = 0

export function emptyValue(us: i64): u64 {
  return <u64>us << TURN_BITS
}

/** The value of a key that was changed last at `us`. */
export function valueAt(us: i64, turn: i64): u64 {
  return emptyValue(us) | (<u64>turn & TURN_MASK)
}

/** Microseconds since the time base at which a value was changed last. */
@inline export function changedAt(value: u64): i64 {
  return <i64>(value >> TURN_BITS)
}

@inline export function turnOf(value: u64): i64 {
  return <i64>(value & TURN_MASK)
}

/** The value for a change at the time last read. */
export function turned(value: u64): u64 {
  return (<u64>(nowUs - baseUs) << TURN_BITS) | ((value + 1) & TURN_MASK)
}

@inline export function slotOf(entry: usize, i: i64): usize {
  return extensionOf(entry) + <usize>i * 8
}

@inline export function slotNumber(entry: usize, slot: usize): i64 {
  return <i64>((slot - slotOf(entry, 0)) / 8)
}

/** The serial tells apart permits that were given at one time in one slot. */
export function permitOf(expiryUs: i64, serial: u64, cost: i64): u64 {
  return ((((<u64>expiryUs & EXPIRY_MASK) << SERIAL_BITS) | (serial & SERIAL_MASK)) << COST_BITS) | <u64>cost
}

/** The serial of a permit that is given with this value's next turn. */
@inline export function serialAfter(value: u64): u64 {
  return (value + 1) & SERIAL_MASK
}

/** When a permit given now expires. */
export function expiryUs(): i64 {
  return nowUs + windowUs
}

/** Microseconds that a permit has left; 0 or less when it has expired or the slot is empty. */
@inline export function leftUs(permit: u64): i64 {
  if (permit == 0) return 0
  // The difference of two times modulo 2^47, as a signed number.
  const shift: i64 = 64 - <i64>EXPIRY_BITS
  return ((<i64>(permit >> (COST_BITS + SERIAL_BITS)) - nowUs) << shift) >> shift
}

/** The time of the key last read, in microseconds since the Unix epoch. */
export function readingUs(): i64 {
  return nowUs
}

/** Whether a time is over for the key last read. */
export function hasPassed(us: i64): bool {
  return us <= nowUs
}

@inline export function costOf(permit: u64): i64 {
  return <i64>(permit & COST_MASK)
}

@inline export function serialOf(permit: u64): u64 {
  return (permit >> COST_BITS) & SERIAL_MASK
}

/** Sets the time of a call on a key with this value. */
export function readAt(value: u64, us: i64): void {
  readUs = us + baseUs
  nowUs = max<i64>(us, <i64>(value >> TURN_BITS)) + baseUs
}

/** Whether the last change lies so far back that no permit can be in use. */
export function isAncient(value: u64, us: i64): bool {
  return value != 0 && us - <i64>(value >> TURN_BITS) > ANCIENT_US
}

/** Counts the permit just given as running; its slot was free when the key was read. */
export function countGiven(): void {
  lastLeftUs = max<i64>(lastLeftUs, windowUs)
}

/** Tokens in flight. */
export function debtOf(entry: usize, value: u64, us: i64): i64 {
  entryRead = entry
  readAt(value, us)
  used = 0
  freeSlot = 0
  lastSlot = 0
  lastLeftUs = 0
  firstLeftUs = i64.MAX_VALUE
  firstCost = 0
  if (entry == 0 || isAncient(value, us)) return 0
  for (let i: i64 = 0; i < slots; i++) {
    const slot = slotOf(entry, i)
    const permit = resolved(slot)
    const left = leftUs(permit)
    if (left > 0) {
      const cost = costOf(permit)
      used += cost
      if (left > lastLeftUs) {
        lastLeftUs = left
        lastSlot = slot
      }
      if (left < firstLeftUs) {
        firstLeftUs = left
        firstCost = 0
      }
      if (left == firstLeftUs) firstCost += cost
    } else {
      // Before it could be read as a permit of the future.
      const isWiped = left < -ANCIENT_US && swap(slot, permit, 0)
      if (freeSlot == 0) {
        freeSlot = slot
        freeWord = isWiped ? 0 : permit
      }
    }
  }
  return used
}

/** Tokens of the key last read that come back within `us` microseconds. */
function backWithin(us: i64): i64 {
  let cost: i64 = 0
  for (let i: i64 = 0; i < slots && entryRead != 0; i++) {
    const permit = resolved(slotOf(entryRead, i))
    const left = leftUs(permit)
    if (left > 0 && left <= us) cost += costOf(permit)
  }
  return cost
}

export function untilFree(amount: i64): i64 {
  const short = used + amount - capacity
  if (short <= 0) return 0
  // The first permit to expire mostly makes enough room, and the others need no second look.
  let low = firstLeftUs
  let high = firstCost >= short ? low : lastLeftUs
  while (low < high) {
    const middle = (low + high) >> 1
    if (backWithin(middle) >= short) high = middle
    else low = middle + 1
  }
  return low + nowUs - readUs
}

export function untilNew(): i64 {
  return lastLeftUs > 0 ? lastLeftUs + nowUs - readUs : 0
}

/**
 * Clears the permits of an entry that changes hands, while the mark stands. A swap may be lost to a descriptor reference of a
 * change that found the last owner's state. That change aborts, and would bring the permit back.
 */
export function clearPermits(entry: usize, mark: u64): bool {
  for (let i: i64 = 0; i < slots; i++) {
    const slot = slotOf(entry, i)
    for (let permit = resolved(slot); permit != 0; permit = resolved(slot)) {
      if (load(entry + STATE) != mark) return false
      if (swap(slot, permit, 0)) break
    }
  }
  return true
}
