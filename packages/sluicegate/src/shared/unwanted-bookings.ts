import type { Key } from '../limiter.js'

/** What goes back in one go; the next go waits for the answers. */
const AT_ONCE = 128
/** So long is waited for bookings on their way; and as long, in all, until somebody is asked again who was given up. */
const LONGEST_MS = 5_000

/** How whoever is asked is doing. */
interface Health {
  /** Milliseconds until it is asked again; 0 while it is. */
  pausedMs(key: string): number
  /** Whether its last call was answered. */
  isSound(key: string): boolean
}

/** Calls a function after a time; answers with how to cancel that. */
type After = (ms: number, fn: () => void) => () => void

interface Unwanted {
  readonly order: number
  readonly giveBack: () => Promise<unknown>
}

/** Bookings of one key on their way, waited for together: until each was answered or is lost, but not for ever. */
class Underway {
  readonly ended: Promise<void>
  private resolve = (): void => undefined
  private readonly cancelTimer: () => void
  private count = 0
  private isOver = false
  private over: () => void

  constructor(after: After, over: () => void) {
    this.over = over
    this.cancelTimer = after(LONGEST_MS, () => this.end())
    this.ended = new Promise((resolve) => {
      this.resolve = resolve
    })
  }

  add(answer: Promise<unknown>): void {
    this.count++
    const settled = (): void => {
      if (--this.count === 0) this.end()
    }
    answer.then(settled, settled)
  }

  /** Nothing is added from now on. */
  whenOver(over: () => void): void {
    this.over = over
  }

  private end(): void {
    if (this.isOver) return
    this.isOver = true
    this.cancelTimer()
    this.over()
    this.resolve()
  }
}

/**
 * Bookings that nobody wants any more, given back the newest first: of most nothing comes back once somebody booked after them. So those
 * of a key that come within a turn or two go together, after all bookings of it that are on their way: some of them may not be wanted either.
 *
 * Whoever was given up is waited for. Where the one that goes ahead then is not answered, the rest stay booked, and wear off. All of that is
 * bounded in time, and keeps no process alive.
 */
export class UnwantedBookings {
  private readonly health: Health
  private readonly after: After
  /** By key. A batch waits for what was on its way when it began, and for nothing that goes out later. */
  private readonly underways = new Map<string, Underway>()
  private readonly batches = new Map<string, Unwanted[]>()
  /** By key: until all batches that were begun are sent. */
  private readonly sendings = new Map<string, Promise<unknown>>()

  constructor(health: Health, after: After = afterIfAlive) {
    this.health = health
    this.after = after
  }

  /** To be told of each booking that goes out, with the answer to it. */
  sent(key: Key, answer: Promise<unknown>): void {
    const name = firstOf(key)
    let underway = this.underways.get(name)
    if (underway === undefined) {
      underway = new Underway(this.after, () => this.underways.delete(name))
      this.underways.set(name, underway)
    }
    underway.add(answer)
  }

  /**
   * @param order of two of a key the one that was booked later has the larger one.
   * @param giveBack makes its call before it returns. It rejects when that is not answered.
   */
  collect(key: Key, order: number, giveBack: () => Promise<unknown>): void {
    const name = firstOf(key)
    const batch = this.batches.get(name) ?? this.begin(name)
    batch.push({ order, giveBack })
  }

  /** Resolves when of what was booked of a key until now nothing is on its way any more, neither there nor back: whoever charges it then leaves it be. */
  async settled(key: Key): Promise<void> {
    const name = firstOf(key)
    await this.underways.get(name)?.ended
    await this.sendings.get(name)
  }

  private begin(name: string): Unwanted[] {
    const batch: Unwanted[] = []
    this.batches.set(name, batch)
    const underway = this.underways.get(name)
    this.underways.delete(name)
    const sending = Promise.all([this.sendings.get(name), this.sendWhenOver(name, batch, underway)]).then(() => {
      if (this.sendings.get(name) === sending) this.sendings.delete(name)
    })
    this.sendings.set(name, sending)
    return batch
  }

  private async sendWhenOver(name: string, batch: readonly Unwanted[], underway: Underway | undefined): Promise<void> {
    if (underway !== undefined) await new Promise<void>((resolve) => underway.whenOver(resolve))
    // Who is told together takes a turn or two to say so.
    await new Promise<void>((resolve) => setImmediate(() => setImmediate(resolve)))
    this.batches.delete(name)
    // A function of the caller's says where a key belongs, and it may throw: then they wear off.
    await this.send(name, batch).catch(() => undefined)
  }

  private async send(key: string, batch: readonly Unwanted[]): Promise<void> {
    const newestFirst = [...batch].reverse().sort((a, b) => b.order - a.order)
    let patienceMs = LONGEST_MS
    for (let from = 0; from < newestFirst.length; ) {
      // As soon as the pause is over somebody else may try, and is waited for then. From the last look to the calls nobody can come between.
      for (let pausedMs = this.health.pausedMs(key); pausedMs > 0; pausedMs = this.health.pausedMs(key)) {
        if (patienceMs <= 0) return
        const ms = Math.min(pausedMs, patienceMs)
        patienceMs -= ms
        await new Promise<void>((resolve) => this.after(ms, resolve))
      }
      // One goes ahead where it is not known whether anybody answers.
      const isSound = this.health.isSound(key)
      const next = newestFirst.slice(from, from + (isSound ? AT_ONCE : 1))
      const ends = await Promise.allSettled(next.map(({ giveBack }) => giveBack()))
      if (!isSound && ends[0]?.status === 'rejected') return
      from += next.length
    }
  }
}

/** Of several keys that were booked together, the one by which it is known who was asked. */
function firstOf(key: Key): string {
  return typeof key === 'string' ? key : (key[0] as string)
}

/** In real time, if the process is still there. */
function afterIfAlive(ms: number, fn: () => void): () => void {
  const timer = setTimeout(fn, ms)
  timer.unref?.()
  return () => clearTimeout(timer)
}
