import { BANNED_UNTIL, BAN_FILTER, BAN_FILTER_SLOTS, base } from "../memory-map"
import { load, raise } from "../atomics/atomics"

// Most keys are never banned. So a take searches for its ban only if two filters let it: the end of the latest ban of all keys,
// and of the keys that share a slot.

/** Whether the key may be banned: some key is, and so is one of the same slot. */
@inline export function mayBeBanned(fingerprint: u64, nowUs: i64): bool {
  return nowUs < <i64>load(base + BANNED_UNTIL) && nowUs < <i64>load(filterSlotOf(fingerprint))
}

@inline function filterSlotOf(fingerprint: u64): usize {
  return base + BAN_FILTER + <usize>((fingerprint >> 1) % BAN_FILTER_SLOTS) * 8
}

/** From now until `untilUs`, takes of this key search for a ban. */
export function addToBanFilter(fingerprint: u64, untilUs: i64): void {
  raise(filterSlotOf(fingerprint), untilUs)
  raise(base + BANNED_UNTIL, untilUs)
}
