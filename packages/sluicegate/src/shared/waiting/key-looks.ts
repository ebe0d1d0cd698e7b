import type { Sleepers } from './sleepers.js'

/** How often a key is looked at whose waiters sleep for longer. */
const EACH_MS = 1_000
/** Keys that are looked at so often; of more each waits longer. */
const MOST_AT_ONCE = 1_000

/** Looks at keys again and again while their waiters sleep for long: another process may have made room. */
export class KeyLooks {
  private readonly sleepers: Sleepers
  private readonly dueMs: (name: string) => number | undefined
  private readonly look: (name: string) => Promise<void>
  /** Keys that are looked at, with what wakes the look. */
  private readonly underway = new Map<string, object>()

  /**
   * @param dueMs when the last waiter of a key is due; undefined where none sleeps.
   * @param look rejects in an outage: then they keep what they have.
   */
  constructor(sleepers: Sleepers, dueMs: (name: string) => number | undefined, look: (name: string) => Promise<void>) {
    this.sleepers = sleepers
    this.dueMs = dueMs
    this.look = look
  }

  /** Call it when a waiter of the key falls asleep. */
  begin(name: string): void {
    if (this.isLong(name) && !this.underway.has(name)) void this.looking(name)
  }

  /** Call it when the last one woke. */
  end(name: string): void {
    this.sleepers.wake(this.underway.get(name))
  }

  private async looking(name: string): Promise<void> {
    const own = {}
    this.underway.set(name, own)
    try {
      for (;;) {
        // Processes that have reserved together do not look together.
        const eachMs = EACH_MS * Math.max(1, this.underway.size / MOST_AT_ONCE)
        await this.sleepers.sleep(eachMs * (1 - Math.random() / 4), undefined, own)
        if (!this.isLong(name)) return
        await this.look(name).catch(() => undefined)
      }
    } catch {
      // Closed.
    } finally {
      this.underway.delete(name)
    }
  }

  private isLong(name: string): boolean {
    const dueMs = this.dueMs(name)
    return dueMs !== undefined && dueMs - this.sleepers.nowMs() > EACH_MS
  }
}
