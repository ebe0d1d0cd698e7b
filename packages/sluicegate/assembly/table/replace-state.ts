import { CAS_RETRIES, STATE, base } from "../memory-map"
import { AGAIN, RETRY } from "../results"
import { add, swap } from "../atomics/atomics"
import { addWord, staging, swapOrStageBoth } from "../atomics/kcas"
import { withValue } from "../atomics/words"
import { LOG, WIDE } from "../policy/encodings"
import { extensionOf } from "../policy/extension"
import { encoding, epoch } from "../policy/policy"
import { header, headerOf } from "../algorithms/log-ring"
import { copyPrevious, kept, needsCopy, wanted } from "../algorithms/previous-count"
import { copyNewest } from "../algorithms/sliding-log"
import * as log from "../algorithms/sliding-log"
import { newestNumber } from "../algorithms/sliding-window"

/** Swaps the state for one with the value `next`, after all that must precede it. Returns 0 when done, else RETRY or AGAIN. */
export function replaceState(entry: usize, state: u64, next: u64, manyWords: bool): f64 {
  const word = withValue(state, epoch, next)
  if (manyWords) {
    if (encoding == WIDE && needsCopy(entry, state, newestNumber(next))) {
      if (staging == 0) {
        copyPrevious(entry, state)
        return AGAIN
      }
      // In a multi-word swap the copy is one more word. If the others fail, no seal is left behind.
      addWord(staging, extensionOf(entry), kept, wanted)
    }
    if (encoding == LOG) {
      const needed = log.alsoNeeded
      if (needed == log.HEADER) {
        return swapOrStageBoth(entry + STATE, state, word, headerOf(entry), header, log.nextHeader) ? 0 : RETRY
      }
      if (needed == log.COPY) {
        const todo = copyNewest(entry, state)
        if (todo != 0) return todo
      }
    }
  }
  if (staging != 0) {
    addWord(staging, entry + STATE, state, word)
    return 0
  }
  if (swap(entry + STATE, state, word)) return 0
  add(base + CAS_RETRIES, 1)
  return RETRY
}
