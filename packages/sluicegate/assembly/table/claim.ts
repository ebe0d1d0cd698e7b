import { ENTRY_SIZE, KEYS, LINE_SIZE, STATE, base } from "../memory-map"
import { claimedIdentity, setClaimedIdentity } from "../results"
import { add, load, swap } from "../atomics/atomics"
import { resolved } from "../atomics/kcas"
import { NEVER_USED, NO_KEY, claimMark, fingerprintOf, identityAfter, isMark, markFingerprint, stateWord } from "../atomics/words"
import { CONCURRENCY, LOG } from "../policy/encodings"
import { extensionOf } from "../policy/extension"
import { encoding, epoch, refresh } from "../policy/policy"
import { clearPermits } from "../algorithms/concurrency"
import { idleValue } from "../algorithms/key-state"
import { emptyHeader } from "../algorithms/log-ring"
import { noCount } from "../algorithms/previous-count"
import { lineAddress, lineAfter, range } from "./layout"

// How an entry changes hands. While a mark stands in the state word, the entry belongs to the thread that put it there, and
// matches no key. The order, and why:
//
// 1. Swap the state for my mark. A thread that had read the state loses its own swap and looks again.
// 2. Rescan the range. Two threads that insert one key into two entries have both marked before either rescans, so at least one of
//    them sees the other: a member wins over a mark, the earlier mark over the later, which is revoked by force.
// 3. Swap the identity. A generation only grows, so a pending swap of an earlier holder of the entry fails from here on. Until
//    here it may succeed, does no harm under a mark, and makes mine fail once: hence the loop.
// 4. Swap the mark for the first state, already charged. A slow thread may lose its mark at any time before: then this fails,
//    nothing was charged, and it starts again.
//
// A mark is never just cleared: its holder may have step 3 still before it, and would rename a live entry. It is taken over, and
// its new holder finishes, or gives up in the same order: identity first.

/** Steps 2 and 3 for the holder of `mark`. False: lost or given up; the entry is no longer mine. */
export function completeClaim(entry: usize, mark: u64, fingerprint: u64, home: i32): bool {
  if (isOnlyClaim(entry, fingerprint, home)) return writeIdentity(entry, mark, fingerprint)
  release(entry, mark)
  return false
}

/** Gives an entry up: no key lives there afterwards. */
export function release(entry: usize, mark: u64): void {
  if (!writeIdentity(entry, mark, NO_KEY)) return
  refresh()
  swap(entry + STATE, mark, stateWord(epoch, claimedIdentity, idleValue()))
}

/** Takes the entry from the holder of `mark` and gives it up. False: the holder finished first. */
export function revoke(entry: usize, mark: u64): bool {
  const mine = claimMark(NO_KEY, load(entry), mark)
  if (!swap(entry + STATE, mark, mine)) return false
  release(entry, mine)
  return true
}

/** Evicts the key whose `state` was read in the entry. False: the state has changed. */
export function evict(entry: usize, state: u64): bool {
  const mine = claimMark(NO_KEY, load(entry), state)
  if (!swap(entry + STATE, state, mine)) return false
  release(entry, mine)
  return true
}

/**
 * Resets the entry's extension for a new key, while the mark stands. The new word differs for each owner, so that a pending swap
 * of an earlier owner fails.
 */
export function resetExtension(entry: usize, mark: u64, identity: u64): bool {
  if (encoding == CONCURRENCY) return clearPermits(entry, mark)
  const address = extensionOf(entry)
  const fresh = encoding == LOG ? emptyHeader(identity) : noCount(identity)
  while (true) {
    const word = resolved(address)
    if (load(entry + STATE) != mark) return false
    if (swap(address, word, fresh)) return true
  }
}

/** Writes the identity while the mark stands. */
function writeIdentity(entry: usize, mark: u64, fingerprint: u64): bool {
  const next = identityAfter(mark, fingerprint)
  while (true) {
    const identity = load(entry)
    if (load(entry + STATE) != mark) return false
    if (swap(entry, identity, next)) {
      setClaimedIdentity(next)
      count(fingerprintOf(identity), fingerprint)
      return true
    }
  }
}

@inline function count(before: u64, after: u64): void {
  if (before == NO_KEY && after != NO_KEY) add(base + KEYS, 1)
  if (before != NO_KEY && after == NO_KEY) add(base + KEYS, -1)
}

/** The rescan. True: the key lives nowhere else in its range, and no other thread is inserting it. */
function isOnlyClaim(mine: usize, fingerprint: u64, home: i32): bool {
  let beforeMine = true
  let line = home
  for (let probe = 0; probe < range; probe++) {
    const end = lineAddress(line) + LINE_SIZE
    for (let entry = lineAddress(line); entry < end; entry += ENTRY_SIZE) {
      if (entry == mine) {
        beforeMine = false
        continue
      }
      const state = resolved(entry + STATE)
      if (state == NEVER_USED) return true
      if (!isMark(state)) {
        if (fingerprintOf(load(entry)) == fingerprint) return false
      } else if (markFingerprint(state) == fingerprint) {
        if (beforeMine || !revoke(entry, state)) return false
      }
    }
    line = lineAfter(line, probe, fingerprint, home)
  }
  return true
}
