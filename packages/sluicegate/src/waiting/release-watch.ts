import type { Key } from '../limiter.js'
import { waitAsync } from '../time/wait-async.js'

/** Of a key a count that changes with every release, in any thread, that it may profit from. */
export type CountOf = (key: Key) => () => number

/** Where threads that share a limiter count what comes back before its time (see `assembly/atomics/release-signal.ts`): places in `words`. */
export interface ReleaseWords {
  /** Shared memory. */
  readonly words: Int32Array
  /** Grows with every release; notified while there are watchers. */
  readonly released: number
  /** Grows with what every key may profit from, such as a new policy. */
  readonly byAll: number
  /** The number of watchers. */
  readonly watchers: number
  /** The first of `groupCount`, each for a part of all keys. */
  readonly groups: number
  readonly groupCount: number
}

/** A count that changes with every release that a key may profit from. `high` is the second half of the key's fingerprint. */
export function releaseCount({ words, byAll, groups, groupCount }: ReleaseWords, high: number): () => number {
  const group = groups + ((high >>> 0) % groupCount)
  // Neither ever falls, so the sum moves when one does.
  return () => (Atomics.load(words, byAll) + Atomics.load(words, group)) | 0
}

/**
 * Watches for releases in any thread while it is wanted. Without `Atomics.waitAsync` it sees none, and waiters rely on the clock.
 *
 * Ordering: a release is made, counted, and then notified if there are watchers. The watcher registers first, then reads the count, then
 * lets waiters ask, then waits for the count to differ from its reading. So of each release, either the watcher is notified, or the
 * count has changed, or the waiter that asks finds it made.
 */
export class ReleaseWatch {
  private readonly at: ReleaseWords
  private readonly onRelease: () => void
  private isWanted = false
  private isWatching = false
  private seen = 0

  constructor(at: ReleaseWords, onRelease: () => void) {
    this.at = at
    this.onRelease = onRelease
  }

  want(isWanted: boolean): void {
    if (isWanted === this.isWanted || waitAsync === undefined) return
    const { words, watchers } = this.at
    this.isWanted = isWanted
    Atomics.add(words, watchers, isWanted ? 1 : -1)
    if (!isWanted) return
    if (!this.isWatching) void this.watch()
    // The last watch is still active, but was not notified of releases while it was not wanted.
    else if (Atomics.load(words, this.at.released) !== this.seen) this.wake()
  }

  /** Ends a watch that is on: it would keep the shared memory. Elsewhere it looks like a release of nothing. */
  close(): void {
    this.want(false)
    if (this.isWatching) this.wake()
  }

  private wake(): void {
    Atomics.notify(this.at.words, this.at.released)
  }

  private async watch(): Promise<void> {
    const { words, released } = this.at
    this.isWatching = true
    while (this.isWanted) {
      this.seen = Atomics.load(words, released)
      this.onRelease()
      if (!this.isWanted || waitAsync === undefined) break
      const wait = waitAsync(words, released, this.seen)
      // Other threads may release without pause: between two reads this thread does its other work.
      await (wait.async ? wait.value : nextTurn())
    }
    this.isWatching = false
  }
}

function nextTurn(): Promise<void> {
  return new Promise((resolve) => void (globalThis.setImmediate ?? setTimeout)(resolve))
}
