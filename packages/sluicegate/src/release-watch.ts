/** Where all threads that share a limiter count releases: one is added to the word, and then it is notified. */
export interface ReleaseWord {
  /** In shared memory. */
  readonly words: Int32Array
  readonly index: number
}

type WaitAsync = (words: Int32Array, index: number, value: number) => { readonly async: boolean; readonly value: unknown }

// Node 20 has it, the types of its time do not yet.
const waitAsync = (Atomics as { waitAsync?: WaitAsync }).waitAsync

/**
 * Hears of releases in other threads, while somebody wants to know. Without `Atomics.waitAsync` it hears of none, and those who wait
 * are left with the clock.
 *
 * Ordering: a release is counted before it is notified. Here the count is read first, then all ask, then the watch begins, which ends at
 * once if the count has moved on: so a release is either seen by those who ask or ends the watch.
 */
export class ReleaseWatch {
  private readonly word: ReleaseWord
  private readonly onRelease: () => void
  private isWanted = false
  private isWatching = false

  constructor(word: ReleaseWord, onRelease: () => void) {
    this.word = word
    this.onRelease = onRelease
  }

  want(isWanted: boolean): void {
    this.isWanted = isWanted
    if (isWanted && !this.isWatching && waitAsync !== undefined) void this.watch(waitAsync)
  }

  /** Ends a watch that is on: it would keep the shared memory. Elsewhere it looks like a release of nothing. */
  close(): void {
    this.isWanted = false
    if (this.isWatching) Atomics.notify(this.word.words, this.word.index)
  }

  private async watch(waitAsync: WaitAsync): Promise<void> {
    const { words, index } = this.word
    this.isWatching = true
    while (this.isWanted) {
      const seen = Atomics.load(words, index)
      this.onRelease()
      if (this.isWanted) await waitAsync(words, index, seen).value
    }
    this.isWatching = false
  }
}
