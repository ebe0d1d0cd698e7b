/** Of what is rounded up twice, by two clocks. */
const MOST_MS_APART = 1

/** The end of a window that all keys share, as a moment of this machine's clock. */
export class WindowEnd {
  private last = new Date(Number.NaN)

  /** The moment in so many milliseconds, or one just after it that was told before: to make a date takes as long as to count. */
  after(ms: number): Date {
    const endMs = Date.now() + ms
    // Read anew each time: whoever was given it may have changed it.
    const apartMs = this.last.getTime() - endMs
    if (!(apartMs >= 0 && apartMs <= MOST_MS_APART)) this.last = new Date(endMs)
    return this.last
  }
}
