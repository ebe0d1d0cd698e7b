import { waitAsync } from './wait-async.js'

/** Where threads that share a limiter count what comes back before its time (see `assembly/atomics/release-signal.ts`): places in `words`. */
export interface ReleaseWords {
  /** Shared memory. */
  readonly words: Int32Array
  /** Grows with every release, and is notified while somebody watches. */
  readonly released: number
  /** Grows with what every key may gain by, such as another policy. */
  readonly byAll: number
  /** How many watch. */
  readonly watchers: number
  /** The first of `groupCount`, each for a part of all keys. */
  readonly groups: number
  readonly groupCount: number
}

/** A count that moves whenever something comes back that a key may gain by. `high` is the second half of the key's fingerprint. */
export function releaseCount({ words, byAll, groups, groupCount }: ReleaseWords, high: number): () => number {
  const group = groups + ((high >>> 0) % groupCount)
  // Neither ever falls, so the sum moves when one does.
  return () => (Atomics.load(words, byAll) + Atomics.load(words, group)) | 0
}

/**
 * Hears of releases, in any thread, while somebody wants to know. Without `Atomics.waitAsync` it hears of none, and those who wait
 * are left with the clock.
 *
 * Ordering: a release is made, counted, and then notified if there are watchers. Here the watcher counts himself first, then reads
 * the count, then lets those ask who may gain, then waits for the count to move from what he read. So of a release either he is
 * told, or the count has moved, or whoever asks finds it made.
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
    // The last watch is still on, and was not told of what came while nobody wanted to know.
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
      // Others may release without end: between two looks this thread does what else it has to do.
      await (wait.async ? wait.value : nextTurn())
    }
    this.isWatching = false
  }
}

function nextTurn(): Promise<void> {
  return new Promise((resolve) => void (globalThis.setImmediate ?? setTimeout)(resolve))
}
