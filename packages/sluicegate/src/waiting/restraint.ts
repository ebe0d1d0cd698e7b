/** For so many times as long as a booking that was given up closed its key, nothing more is booked ahead for it. */
const TIMES_AS_LONG = 8
/** Keys remembered, of which the longest known is forgotten first. */
const MOST_KEYS = 10_000

/**
 * Keys for which a waiter gave up what it had booked ahead. Some of that may not come back: a window or log stays closed until the time that
 * was booked. For a while others who wait for such a key stand in line without a booking, so that nobody can keep a key closed by waits that
 * are given up again and again.
 */
export class Restraint {
  private readonly untilUs = new Map<string, number>()

  /** A booking for `atUs` was given up, and the key would not pass now. */
  add(name: string, nowUs: number, atUs: number): void {
    const untilUs = Math.max(nowUs + TIMES_AS_LONG * (atUs - nowUs), this.untilUs.get(name) ?? 0)
    this.untilUs.delete(name)
    if (this.untilUs.size >= MOST_KEYS) this.forgetOne()
    this.untilUs.set(name, untilUs)
  }

  holds(name: string, nowUs: number): boolean {
    const untilUs = this.untilUs.get(name)
    if (untilUs === undefined) return false
    if (untilUs > nowUs) return true
    this.untilUs.delete(name)
    return false
  }

  private forgetOne(): void {
    for (const name of this.untilUs.keys()) {
      this.untilUs.delete(name)
      return
    }
  }
}
