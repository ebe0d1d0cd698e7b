import { load, store } from "./atomics"
import { blockLeft as blockOfKeyLeft, block as blockKey, change, detail, forgottenDebt, take as takeKey, why } from "./cas"
import { BLOCKED_UNTIL, DENY_WHEN_FULL, EPOCH, LINES, TAKEOVER_HIGH } from "./memory-map"
import { refresh } from "./policy"
import { homeLine, openTable } from "./table"
import { update as putInForce } from "./update"
import { PEEK, PENALIZE, REFUND, RESET } from "./verbs"

export {
  BLOCK_DESCRIPTION, BLOCK_SIZE, CAS_RETRIES, CONTENTIONS, EVICTIONS, KEYS, REFUSALS, TABLE,
} from "./memory-map"
export { BLOCKED, CONTENDED, EVICTED, LATE, REFUSED } from "./cas"
export { isWhole, policyBlock } from "./policy"
export { prepare, propose } from "./update"

/** Puts a proposed block in force from `nowUs` on, with these numbers. */
export function update(block: usize, unitsPerUs: f64, unitsPerToken: f64, capacity: f64, packed: bool, nowUs: f64): void {
  putInForce(block, <i64>unitsPerUs, <i64>unitsPerToken, <i64>capacity, packed, <i64>nowUs)
}

const LONG_AGO: i64 = -(1 << 62)

/** Lays out a fresh, zeroed memory. Publish a policy with `propose` and `update` before the first take. */
export function create(lines: i32, denyWhenFull: bool): void {
  store(LINES, <u64>lines)
  store(DENY_WHEN_FULL, denyWhenFull ? 1 : 0)
  store(BLOCKED_UNTIL, <u64>LONG_AGO)
  store(TAKEOVER_HIGH, <u64>LONG_AGO)
  openTable()
}

/** Opens a memory that another thread has laid out. */
export function attach(): void {
  openTable()
  refresh()
}

/** Loads the policy in force; calls the host's `policyChanged` if it is another one. */
export function look(): void {
  if (load(EPOCH) != 0) refresh()
}

export function take(low: u32, high: u32, nowUs: f64, tokens: i32): f64 {
  return takeKey(fingerprintFrom(low, high), homeLine(low), tokens, <i64>nowUs)
}

export function peek(low: u32, high: u32, nowUs: f64): f64 {
  return change(PEEK, fingerprintFrom(low, high), homeLine(low), 0, <i64>nowUs)
}

export function refund(low: u32, high: u32, nowUs: f64, tokens: f64): f64 {
  return change(REFUND, fingerprintFrom(low, high), homeLine(low), <i64>tokens, <i64>nowUs)
}

export function penalize(low: u32, high: u32, nowUs: f64, tokens: f64): f64 {
  return change(PENALIZE, fingerprintFrom(low, high), homeLine(low), <i64>tokens, <i64>nowUs)
}

export function reset(low: u32, high: u32, nowUs: f64): f64 {
  return change(RESET, fingerprintFrom(low, high), homeLine(low), 0, <i64>nowUs)
}

/** Blocks for `us` microseconds, 0 lifts. Returns the microseconds left. */
export function block(low: u32, high: u32, nowUs: f64, us: f64): f64 {
  return blockKey(fingerprintFrom(low, high), homeLine(low), <i64>us, <i64>nowUs)
}

/** Microseconds for which the key is still blocked. */
export function blockLeft(low: u32, high: u32, nowUs: f64): f64 {
  return blockOfKeyLeft(fingerprintFrom(low, high), homeLine(low), <i64>nowUs)
}

export function whyUnanswered(): i32 {
  return why
}

export function detailOfUnanswered(): f64 {
  return detail
}

/** With EVICTED: what the forgotten key owed, in units. */
export function forgotten(): f64 {
  return <f64>forgottenDebt
}

/** 48 bits, even and not 0. The low word's upper half also chooses the line. */
@inline function fingerprintFrom(low: u32, high: u32): u64 {
  return max<u64>(((<u64>high << 16) | <u64>(low & 0xffff)) & ~1, 2)
}
