import { KeyHolds, type LatestTime } from './key-holds.js'

/** Keys of which something is held at once. One more is denied: a flood of keys cannot fill the memory. */
const MOST_HELD_KEYS = 100_000
/** Keys looked at with each hold that is opened, to drop those whose holds have ended: more than one, so the rest shrinks. */
const SWEPT = 2

/** The keys of a limiter of which something is held. */
export class HeldKeys {
  private readonly keys = new Map<string, KeyHolds>()
  private readonly latest: LatestTime
  private cursor: Iterator<[string, KeyHolds]> = this.keys.entries()

  /** @param latest shared by limiters whose holds are opened together. */
  constructor(latest: LatestTime) {
    this.latest = latest
  }

  /** What is held of a key; undefined if nothing is. */
  of(key: string, nowUs: number): KeyHolds | undefined {
    if (this.keys.size === 0) return undefined
    const held = this.keys.get(key)
    if (held === undefined || held.at(this.time(nowUs)) > 0) return held
    this.keys.delete(key)
    return undefined
  }

  /** For a new hold of a key; undefined when there is no room for one more key. */
  claim(key: string, nowUs: number): KeyHolds | undefined {
    this.sweep(this.time(nowUs))
    const known = this.keys.get(key)
    if (known !== undefined || this.keys.size >= MOST_HELD_KEYS) return known
    const made = new KeyHolds()
    this.keys.set(key, made)
    return made
  }

  /** A time that never runs back. */
  time(nowUs: number): number {
    if (nowUs > this.latest.us) this.latest.us = nowUs
    return this.latest.us
  }

  get size(): number {
    return this.keys.size
  }

  private sweep(us: number): void {
    for (let i = 0; i < SWEPT; i++) {
      const { done, value } = this.cursor.next()
      if (done) {
        this.cursor = this.keys.entries()
        return
      }
      if (value[1].at(us) === 0) this.keys.delete(value[0])
    }
  }
}
