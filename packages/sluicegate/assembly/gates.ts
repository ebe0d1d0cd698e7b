import { load, raise } from "./atomics"
import { BLOCKED_UNTIL, GATES, GATE_COUNT } from "./memory-map"
import { base } from "./section"

// Most keys are never blocked, so that a take looks for its block only behind two gates: until when any key is blocked, and until
// when any of those that share a gate is.

/** Whether the key may be blocked: some key is, and one behind the same gate. */
@inline export function isGated(fingerprint: u64, nowUs: i64): bool {
  return nowUs < <i64>load(base + BLOCKED_UNTIL) && nowUs < <i64>load(gateOf(fingerprint))
}

@inline function gateOf(fingerprint: u64): usize {
  return base + GATES + <usize>((fingerprint >> 1) % GATE_COUNT) * 8
}

/** Whoever comes before `untilUs` looks for a block. */
export function closeGates(fingerprint: u64, untilUs: i64): void {
  raise(gateOf(fingerprint), untilUs)
  raise(base + BLOCKED_UNTIL, untilUs)
}
