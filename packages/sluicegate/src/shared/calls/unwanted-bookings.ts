import type { Key } from '../../limiter.js'
import { type After, afterUnheld } from '../../time/clock.js'
import { firstKeyOf } from '../backend.js'

/** Reservations cancelled at once; the next batch waits for the answers. */
const AT_ONCE = 128
/** The longest wait for reservations on their way, and in all for an open circuit. */
const LONGEST_MS = 5_000

/** The circuit of a key's server. */
interface Health {
  /** Milliseconds until calls may be made again; 0 for now. */
  pausedMs(key: string): number
  /** Whether its last call was answered. */
  isSound(key: string): boolean
}

interface Unwanted {
  readonly order: number
  readonly giveBack: () => Promise<unknown>
}

/** Reservations of one key on their way: `ended` resolves when each was answered or lost, or after {@link LONGEST_MS}. */
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

  /** Calls `over` at the end. Nothing is added after this. */
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
 * Cancels reservations of callers that gave up, the newest first: of most policies nothing comes back once another reservation came after.
 * So those of a key that are given up within a turn or two are cancelled together, after all reservations of the key that are on their way,
 * since these may be given up too.
 *
 * An open circuit is waited for. If the first cancellation after that is not answered, the rest stay charged and flow back. All of it is
 * bounded in time and keeps no process alive.
 */
export class UnwantedBookings {
  private readonly health: Health
  private readonly after: After
  /** By key. A batch waits for what was on its way when it began, not for what is sent later. */
  private readonly underways = new Map<string, Underway>()
  private readonly batches = new Map<string, Unwanted[]>()
  /** By key: until all batches are sent. */
  private readonly sendings = new Map<string, Promise<unknown>>()

  constructor(health: Health, after: After = afterUnheld) {
    this.health = health
    this.after = after
  }

  /** Call it with each reservation that is sent, and its answer. */
  sent(key: Key, answer: Promise<unknown>): void {
    const name = firstKeyOf(key)
    let underway = this.underways.get(name)
    if (underway === undefined) {
      underway = new Underway(this.after, () => this.underways.delete(name))
      this.underways.set(name, underway)
    }
    underway.add(answer)
  }

  /**
   * @param order of two reservations of a key the later one has the larger number.
   * @param giveBack makes its call before it returns. It rejects when that is not answered.
   */
  collect(key: Key, order: number, giveBack: () => Promise<unknown>): void {
    const name = firstKeyOf(key)
    const batch = this.batches.get(name) ?? this.begin(name)
    batch.push({ order, giveBack })
  }

  /** Resolves when no reservation of the key made until now, and no cancellation, is on its way: charging the key then disturbs none. */
  async settled(key: Key): Promise<void> {
    const name = firstKeyOf(key)
    await this.underways.get(name)?.ended
    await this.sendings.get(name)
  }

  /** The cancellations of the key that are under way; undefined without any. */
  pending(key: Key): Promise<unknown> | undefined {
    return this.sendings.get(firstKeyOf(key))
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
    // Callers that are aborted together take a turn or two to give up.
    await new Promise<void>((resolve) => setImmediate(() => setImmediate(resolve)))
    this.batches.delete(name)
    // `hashTag` is a function of the caller's, and may throw: then they flow back.
    await this.send(name, batch).catch(() => undefined)
  }

  private async send(key: string, batch: readonly Unwanted[]): Promise<void> {
    const newestFirst = [...batch].reverse().sort((a, b) => b.order - a.order)
    let patienceMs = LONGEST_MS
    for (let from = 0; from < newestFirst.length; ) {
      // After the pause another call may probe; this waits for it. Between the last check and the calls nothing else runs.
      for (let pausedMs = this.health.pausedMs(key); pausedMs > 0; pausedMs = this.health.pausedMs(key)) {
        if (patienceMs <= 0) return
        const ms = Math.min(pausedMs, patienceMs)
        patienceMs -= ms
        await new Promise<void>((resolve) => this.after(ms, resolve))
      }
      // One goes ahead where it is unknown whether the server answers.
      const isSound = this.health.isSound(key)
      const next = newestFirst.slice(from, from + (isSound ? AT_ONCE : 1))
      const ends = await Promise.allSettled(next.map(({ giveBack }) => giveBack()))
      if (!isSound && ends[0]?.status === 'rejected') return
      from += next.length
    }
  }
}
