import { BANNED_UNTIL, BAN_FILTER, BAN_FILTER_SLOTS, base } from "../memory-map"
import { load, raise } from "../atomics/atomics"

// Most keys are never blocked, so that a take looks for its block only behind two gates: until when any key is blocked, and until
// when any of those that share a gate is.

/** Whether the key may be blocked: some key is, and one behind the same gate. */
@inline export function mayBeBanned(fingerprint: u64, nowUs: i64): bool {
  return nowUs < <i64>load(base + BANNED_UNTIL) && nowUs < <i64>load(filterSlotOf(fingerprint))
}

@inline function filterSlotOf(fingerprint: u64): usize {
  return base + BAN_FILTER + <usize>((fingerprint >> 1) % BAN_FILTER_SLOTS) * 8
}

/** Whoever comes before `untilUs` looks for a block. */
export function addToBanFilter(fingerprint: u64, untilUs: i64): void {
  raise(filterSlotOf(fingerprint), untilUs)
  raise(base + BANNED_UNTIL, untilUs)
}
