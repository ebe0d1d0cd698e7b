import { EXPLORED } from "../build-flags"
import { RELEASED, RELEASED_BY_ALL, RELEASE_GROUPS, RELEASE_GROUP_COUNT, RELEASE_WATCHERS, base } from "../memory-map"

// Who waits in line for a key, in any thread, wants to hear when something came back before its time. What came back is counted, by
// group of keys, and one word is notified if anybody watches it. Each counts himself among the watchers first, then reads the counts,
// then asks for his key: so of a release he has missed he finds the count changed, or its effect.
//
// These are plain counters to the rest of the core: nothing is decided by them.

/** To be called after the change. The group of a key is in the high word of its hash. */
export function signalRelease(high: u32): void {
  if (EXPLORED) return
  atomic.add<u32>(base + RELEASE_GROUPS + <usize>(high % RELEASE_GROUP_COUNT) * 4, 1)
  notify()
}

/** The same for every key there is. */
export function signalReleaseOfAll(): void {
  if (EXPLORED) return
  atomic.add<u32>(base + RELEASED_BY_ALL, 1)
  notify()
}

function notify(): void {
  atomic.add<u32>(base + RELEASED, 1)
  if (atomic.load<u32>(base + RELEASE_WATCHERS) != 0) atomic.notify(base + RELEASED)
}
