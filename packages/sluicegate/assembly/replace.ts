import { AGAIN, RETRY } from "./answers"
import { add, swap } from "./atomics"
import { companionsOf } from "./companions"
import { LOG, WIDE } from "./forms"
import { CAS_RETRIES, STATE } from "./memory-map"
import { epoch, form } from "./policy"
import { copy, kept, needsCopy, wanted } from "./previous-count"
import { header, headerOf } from "./ring"
import { base } from "./section"
import { copied } from "./log-copy"
import * as several from "./several"
import * as log from "./sliding-log"
import { newestNumber } from "./sliding-window"
import { withValue } from "./words"

/** The descriptor in which changes are written down instead of being made; 0 while they are made at once. */
export let staging: usize = 0

export function stageIn(descriptor: usize): void {
  staging = descriptor
}

/** Swaps the state for one with the value `next`, once everything else is in place for it. 0 when that is done, else what is to do. */
export function replace(entry: usize, state: u64, next: u64, manyWords: bool): f64 {
  const word = withValue(state, epoch, next)
  if (manyWords) {
    if (form == WIDE && needsCopy(entry, state, newestNumber(next))) {
      if (staging == 0) {
        copy(entry, state)
        return AGAIN
      }
      // Among several words the copy is one more; should the others not come to pass, no seal is left behind.
      several.add(staging, companionsOf(entry), kept, wanted)
    }
    if (form == LOG) {
      const needed = log.alsoNeeded
      if (needed == log.HEADER) {
        return bothReplaced(entry + STATE, state, word, headerOf(entry), header, log.nextHeader) ? 0 : RETRY
      }
      if (needed != log.NOTHING) {
        const todo = copied(entry, state)
        if (todo != 0) return todo
        if (needed == log.COPY_ALONE) return AGAIN
      }
    }
  }
  if (staging != 0) {
    several.add(staging, entry + STATE, state, word)
    return 0
  }
  if (swap(entry + STATE, state, word)) return 0
  add(base + CAS_RETRIES, 1)
  return RETRY
}

/** Swaps two words together, or writes both down. */
export function bothReplaced(one: usize, oneSeen: u64, oneNext: u64, other: usize, otherSeen: u64, otherNext: u64): bool {
  if (staging == 0) return bothSwapped(one, oneSeen, oneNext, other, otherSeen, otherNext)
  several.add(staging, one, oneSeen, oneNext)
  several.add(staging, other, otherSeen, otherNext)
  return true
}

/** Swaps two words together at once. */
export function bothSwapped(one: usize, oneSeen: u64, oneNext: u64, other: usize, otherSeen: u64, otherNext: u64): bool {
  const descriptor = several.open()
  if (descriptor == 0) return false
  several.add(descriptor, one, oneSeen, oneNext)
  several.add(descriptor, other, otherSeen, otherNext)
  if (several.commit(descriptor)) return true
  add(base + CAS_RETRIES, 1)
  return false
}
