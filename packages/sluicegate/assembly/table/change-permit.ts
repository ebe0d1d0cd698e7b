import { RETRY, seenState } from "../results"
import { backOff } from "../atomics/back-off"
import { lagOf, valueOf } from "../atomics/words"
import { epoch, refresh, sinceBase } from "../policy/policy"
import { changePermit } from "../algorithms/permits"
import { MAX_ATTEMPTS, givenUp } from "./cas-loop"
import { migrate } from "./migrate"
import { find } from "./search"
import { rebased } from "./update"

/** See `changePermit` in permits.ts; 0 also for a key outside of the table. */
export function changePermitOf(fingerprint: u64, home: i32, nowUs: i64, renew: bool, given: i64, untilUs: i64, tokens: i64): f64 {
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
    if (attempt > 0) backOff(attempt)
    const entry = find(fingerprint, home)
    if (entry == 0) return 0
    const state = seenState
    refresh()
    if (rebased(nowUs)) continue
    if (lagOf(state, epoch) != 0) {
      if (!migrate(entry)) break
      continue
    }
    const answer = changePermit(renew, entry, state, valueOf(state), sinceBase(nowUs), given, untilUs, tokens)
    if (answer != RETRY) return answer
  }
  return givenUp()
}
