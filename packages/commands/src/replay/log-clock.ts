/** Records in a row that show a step of the writer's clock, or a pause; fewer are lines of a wild time. */
const RECORDS_OF_A_STEP = 100
/** A record that is further ahead waits for those after it. */
const STEADY_MS = 1_000
/** A few records further away from the others than this are wild, whatever their order says. */
const LONGEST_PAUSE_MS = 366 * 86_400_000

/** What a {@link LogClock} does with records. */
export interface LogClockOptions<Item> {
  /** How far a record may be behind the latest one: servers write a line when a response ends. */
  readonly lateMs: number
  /** A clock that does not step, in Unix milliseconds, which no record is ahead of. Undefined: the log alone says what time it is. */
  readonly nowMs?: (() => number) | undefined
  /** The record as it may wait while others are read. */
  readonly copyOf: (item: Item) => Item
  /** Called for each record in the order of the log, with the time at which it counts, and its own, which differs where that is wild. */
  readonly onItem: (item: Item, timeMs: number, ownMs: number) => void
}

interface Waiting<Item> {
  readonly item: Item
  readonly timeMs: number
  /** With the shift. */
  readonly ownMs: number
}

/**
 * The times at which the records of a log count. A few records far ahead of the others or far behind them are wild: those ahead count at
 * the latest time of the others. After a step back of the writer's clock times go on from the latest. A record that is a step away from
 * those before it waits until those after it show which of these it is.
 */
export class LogClock<Item> {
  /** Records of a wild time. */
  wild = 0
  /** Steps back of the writer's clock. */
  steps = 0
  readonly #options: LogClockOptions<Item>
  #latestMs = Number.NEGATIVE_INFINITY
  #shiftMs = 0
  #waiting: Waiting<Item>[] = []
  /** Whether the first of those that wait is ahead; else all of them are behind. */
  #areAhead = false

  constructor(options: LogClockOptions<Item>) {
    this.#options = options
  }

  add(item: Item, timeMs: number): void {
    const ownMs = this.#ownTime(timeMs)
    const latestMs = this.#latestMs
    const isAhead = ownMs > latestMs + STEADY_MS
    if (!isAhead && ownMs >= latestMs - this.#options.lateMs) {
      if (this.#waiting.length > 0) this.#releaseWild()
      this.#count(item, ownMs)
      return
    }
    if (isAhead && !this.#areAhead) this.#releaseWild()
    if (this.#waiting.length === 0) this.#areAhead = isAhead
    this.#waiting.push({ item: this.#options.copyOf(item), timeMs, ownMs })
    if (this.#waiting.length === RECORDS_OF_A_STEP) this.#stepTo(middleOf(this.#waiting))
  }

  /** Lets go of those that wait for others: for now none follow. Those behind may be the first ones after a step back, and wait on. */
  settle(): void {
    while (this.#areAhead && this.#waiting.length > 0) {
      const pauses = this.#waiting.filter(({ ownMs }) => this.#isPause(ownMs - this.#latestMs))
      if (pauses.length === 0) this.#releaseWild()
      else this.#stepTo(middleOf(pauses))
    }
  }

  /** Lets go of all that wait: the log has ended. */
  end(): void {
    this.settle()
    this.#releaseWild()
  }

  /** Before the first record that counts, any time is one. */
  #isPause(ms: number): boolean {
    return (ms > STEADY_MS && ms <= LONGEST_PAUSE_MS) || ms === Number.POSITIVE_INFINITY
  }

  #ownTime(timeMs: number): number {
    const { nowMs, lateMs } = this.#options
    const ownMs = timeMs + this.#shiftMs
    if (nowMs === undefined || ownMs <= this.#latestMs) return ownMs
    const now = nowMs()
    if (ownMs <= now) return ownMs
    if (timeMs > now || timeMs < this.#latestMs - lateMs) return now
    // The writer's clock is right again.
    this.#shiftMs = 0
    return timeMs
  }

  #count(item: Item, ownMs: number): void {
    if (ownMs > this.#latestMs) this.#latestMs = ownMs
    this.#options.onItem(item, ownMs, ownMs)
  }

  #releaseWild(): void {
    const waiting = this.#waiting
    this.#waiting = []
    for (const each of waiting) this.#releaseAsWild(each)
  }

  #releaseAsWild({ item, ownMs }: Waiting<Item>): void {
    this.wild++
    this.#options.onItem(item, this.#latestMs, ownMs)
  }

  /** Time goes on with the records that wait, up to the one in the middle of their times: those behind it have fewer after them, and wait on. */
  #stepTo(middleMs: number): void {
    const waiting = this.#waiting
    this.#waiting = []
    const isWild = ({ ownMs }: Waiting<Item>): boolean => ownMs > middleMs + STEADY_MS || ownMs < middleMs - LONGEST_PAUSE_MS
    const base = waiting.find((each) => !isWild(each)) as Waiting<Item>
    const changeMs = this.#changeTo(base)
    if (changeMs > 0) this.steps++
    this.#shiftMs += changeMs
    this.#latestMs = Math.max(this.#latestMs, base.ownMs + changeMs)
    const sure = waiting.findIndex(({ ownMs }) => ownMs === middleMs) + 1
    for (const each of waiting.slice(0, sure)) {
      if (isWild(each) || each.ownMs + changeMs < this.#latestMs - this.#options.lateMs) this.#releaseAsWild(each)
      else this.#count(each.item, each.ownMs + changeMs)
    }
    for (const { item, timeMs } of waiting.slice(sure)) this.add(item, timeMs)
  }

  /** By how much the shift changes: it grows with a step back, and ends where the writer's own time is ahead again. */
  #changeTo({ ownMs, timeMs }: Waiting<Item>): number {
    const latestMs = this.#latestMs
    if (ownMs < latestMs - this.#options.lateMs) return latestMs - ownMs
    return timeMs > latestMs ? -this.#shiftMs : 0
  }
}

function middleOf(waiting: readonly Waiting<unknown>[]): number {
  const times = waiting.map(({ ownMs }) => ownMs).sort((a, b) => a - b)
  return times[(times.length - 1) >> 1] as number
}
