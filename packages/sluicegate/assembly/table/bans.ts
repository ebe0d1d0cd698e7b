import { BANNED, noAnswer } from "../results"
import { banFingerprint } from "../atomics/words"
import { BAN, PEEK } from "../algorithms/verbs"
import { addToBanFilter, mayBeBanned } from "./ban-filter"
import { change } from "./cas-loop"

/** Bans for `us` microseconds; 0 lifts the ban. Returns the microseconds left. */
export function ban(fingerprint: u64, home: i32, us: i64, nowUs: i64): f64 {
  if (us > 0) {
    // First the filter, then the entry: once the entry stands, no take can miss it behind the filter.
    addToBanFilter(fingerprint, nowUs + us)
  }
  return change(BAN, banFingerprint(fingerprint), home, us, nowUs, 0)
}

/** Microseconds until the key's ban ends. */
export function banLeft(fingerprint: u64, home: i32, nowUs: i64): f64 {
  return mayBeBanned(fingerprint, nowUs) ? change(PEEK, banFingerprint(fingerprint), home, 0, nowUs, 0) : 0
}

/** Changes a key that is not banned. */
export function unlessBanned(verb: i32, fingerprint: u64, home: i32, tokens: i64, nowUs: i64, bound: i64): f64 {
  const left = banLeft(fingerprint, home, nowUs)
  if (left != 0) return left > 0 ? noAnswer(BANNED, left) : left
  return change(verb, fingerprint, home, tokens, nowUs, bound)
}
