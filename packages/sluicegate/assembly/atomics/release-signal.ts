import { EXPLORED } from "../build-flags"
import { RELEASED, RELEASED_BY_ALL, RELEASE_GROUPS, RELEASE_GROUP_COUNT, RELEASE_WATCHERS, base } from "../memory-map"

// Wakes callers that wait for a key, in any thread, when something came back early. Releases are counted by group of keys, and one
// word is notified while any thread watches. A waiting caller first adds itself to the watchers, then reads the counts, then asks
// for its key. So if it misses a release, it finds either the count changed or the release's effect.
//
// To the rest of the core these are plain counters: no decision depends on them.

/** Call it after the change. The high word of a key's hash gives its group. */
export function signalRelease(high: u32): void {
  if (EXPLORED) return
  atomic.add<u32>(base + RELEASE_GROUPS + <usize>(high % RELEASE_GROUP_COUNT) * 4, 1)
  notify()
}

/** The same for all keys. */
export function signalReleaseOfAll(): void {
  if (EXPLORED) return
  atomic.add<u32>(base + RELEASED_BY_ALL, 1)
  notify()
}

function notify(): void {
  atomic.add<u32>(base + RELEASED, 1)
  if (atomic.load<u32>(base + RELEASE_WATCHERS) != 0) atomic.notify(base + RELEASED)
}
