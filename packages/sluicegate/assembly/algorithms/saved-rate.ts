import { RECORD_SINCE_US } from "../memory-map"
import { field } from "../policy/policy-record"
import {
  baseUs, capacity, isOfCalls, latestUs, policyRecord, sinceBase, standing, unitsPerToken, unitsPerUs, windowUs,
} from "../policy/policy"
import { sameDebt } from "./migrate-value"
import { debtAt } from "./rate"
import { MOST_NUMBER, MOST_US, next, nextSigned, nextWide, put, putSigned, putWide } from "./saved-numbers"
import { DEEPEST_DEBT_BURSTS } from "./verbs"
import { scaled } from "./wide-arithmetic"

// A saved bucket or GCRA. Terms: units a microsecond | units a token | capacity | time. Of the key: its debt as
// of that time, which may be long past. A debt below zero says since when
// the key owes nothing, so that a clock that steps back finds it as it was.

const MOST_DEBT: i64 = 1 << 60
/** More than any value holds, in units. */
const MOST_ELAPSED: i64 = 1 << 60

export function saveTerms(): void {
  put(unitsPerUs)
  put(unitsPerToken)
  put(capacity)
  putSigned(referenceUs() + baseUs)
}

export function saveRate(value: u64): void {
  putWide(debtAt(value, referenceUs()))
}

/** When the policy came in force: a key that has not changed is saved by the same numbers. */
function referenceUs(): i64 {
  return sinceBase(field(policyRecord(), RECORD_SINCE_US))
}

let fromPerUs: i64 = 0
let fromPerToken: i64 = 0
let fromCapacity: i64 = 0
let atUs: i64 = 0
let debt: i64 = 0

export function readTerms(): void {
  fromPerUs = max<i64>(next(MOST_NUMBER), 1)
  fromPerToken = max<i64>(next(MOST_NUMBER), 1)
  fromCapacity = max<i64>(next(MOST_NUMBER), 1)
  atUs = nextSigned(MOST_US)
}

/** Whether the terms last read are those in force. */
export function areOwnTerms(): bool {
  return fromPerUs == unitsPerUs && fromPerToken == unitsPerToken && fromCapacity == capacity
}

export function readRate(): void {
  debt = nextWide(MOST_DEBT)
}

/** The debt at `nowUs`, in units of the policy in force: exact under the same numbers, otherwise as a change of policy makes it. */
function debtNow(nowUs: i64): i64 {
  const elapsedUs = min<i64>(standing(nowUs) - atUs, MOST_ELAPSED / fromPerUs)
  const owed = debt - max<i64>(elapsedUs, -(MOST_ELAPSED / fromPerUs)) * fromPerUs
  if (areOwnTerms()) return min<i64>(owed, deepest(nowUs))
  return <i64>scaled(<u64>max<i64>(owed, 0), <u64>unitsPerToken, <u64>fromPerToken, <u64>capacity)
}

/** More than any key owes. */
function deepest(nowUs: i64): i64 {
  return (isOfCalls() ? windowUs * unitsPerUs : DEEPEST_DEBT_BURSTS * capacity) + (latestUs() - standing(nowUs)) * unitsPerUs
}

export function loadedRate(nowUs: i64): u64 {
  return sameDebt(policyRecord(), debtNow(nowUs), sinceBase(nowUs))
}

/** Tokens spent at `nowUs`, rounded up. */
export function spentAtRate(nowUs: i64): i64 {
  return (max<i64>(debtNow(nowUs), 0) + unitsPerToken - 1) / unitsPerToken
}
