import type { Decision } from '../../decision/decision.js'
import { isPermit } from '../../decision/permit.js'
import { isOutage } from '../../errors.js'
import { nameOf } from '../../key.js'
import { AbortWatch } from '../../waiting/abort-watch.js'
import type { Reservations } from './reservations.js'
import type { Sleepers } from './sleepers.js'
import { type Wait, type Waited, WaitingQueue } from './waiting-queue.js'

/** How often to look whether the backend is back: the first and the longest pause. */
const FIRST_LOOK_MS = 100
const LAST_LOOK_MS = 5_000

/** `wait` during an outage. */
export class OutageWaiting {
  private readonly reservations: Reservations
  private readonly sleepers: Sleepers
  private readonly aborts = new AbortWatch()
  private readonly again: (wait: Wait) => Promise<Waited>
  /** Those of each key that sleep until the store is back. */
  private readonly queues = new Map<string, WaitingQueue>()

  /** @param again waits on the backend; rejects with `OUTAGE` while that is not back. */
  constructor(reservations: Reservations, sleepers: Sleepers, again: (wait: Wait) => Promise<Waited>) {
    this.reservations = reservations
    this.sleepers = sleepers
    this.again = again
  }

  /** Waits for the local share, and for the backend should it be back before: then the whole budget is available again. */
  async wait(wait: Wait): Promise<Waited> {
    const { request, untilMs } = wait
    const given = request.signal
    given?.throwIfAborted()
    const over = new AbortController()
    const unwatch = given && this.aborts.add(given, () => over.abort(given.reason))
    const watched = { ...request, signal: over.signal }
    let isOver = false
    const local = this.reservations.waitWithout({ ...watched, maxWaitMs: Math.max(0, untilMs - this.sleepers.nowMs()) }).then((answer) => {
      // Both answered at once: this permit has no holder.
      if (isOver && isPermit(answer)) void answer.release()
      return { decision: answer }
    })
    const store = this.onceBack({ ...wait, request: watched })
    store.catch(() => undefined)
    try {
      const first = await Promise.race([local, store])
      if (!this.mayPass(first.decision) || this.sleepers.nowMs() >= untilMs) return first
      // The share denies it for longer than it waits, and the store may be back before.
      const atLast = this.sleepers
        .sleep(untilMs - this.sleepers.nowMs(), over.signal)
        .then(() => this.reservations.waitWithout({ ...watched, maxWaitMs: 0 }))
        .then((decision) => ({ decision }))
      atLast.catch(() => undefined)
      return await Promise.race([atLast, store])
    } finally {
      isOver = true
      unwatch?.()
      over.abort()
    }
  }

  private mayPass({ allowed, source, retryAfterMs }: Decision): boolean {
    return !allowed && source === 'outage' && retryAfterMs < Number.POSITIVE_INFINITY && this.reservations.waitsInOutage
  }

  /** The first of a key looks whether the store is back, or where it gives up the next; then all of the key ask it at once, in their order. */
  private async onceBack(wait: Wait): Promise<Waited> {
    const { request, untilMs } = wait
    const name = nameOf(request.key)
    for (let pauseMs = FIRST_LOOK_MS; ; pauseMs = Math.min(LAST_LOOK_MS, pauseMs * 1.5)) {
      const isLooking = await this.turn(name, wait, pauseMs)
      const answer = this.again(wait)
      // One that waits on for its tokens has been answered, too.
      const isBack = Promise.race([answer, this.sleepers.sleep(2 * this.reservations.timeoutMs, request.signal)])
      isBack.then(
        () => this.wakeAll(name),
        () => undefined,
      )
      try {
        return await answer
      } catch (error) {
        if (isOutage(error) && this.sleepers.nowMs() < untilMs) continue
        if (isLooking) this.sleepers.wake(this.queues.get(name)?.first)
        throw error
      }
    }
  }

  /** Sleeps until it may ask: the first of its key after a pause, others when they are woken or their time is over. Whether it was the first. */
  private async turn(name: string, wait: Wait, pauseMs: number): Promise<boolean> {
    const queue = this.queues.get(name) ?? new WaitingQueue()
    this.queues.set(name, queue)
    const place = queue.add(wait)
    try {
      const leftMs = wait.untilMs - this.sleepers.nowMs()
      await this.sleepers.sleep(queue.first === wait ? pauseMs : Math.max(pauseMs, leftMs), wait.request.signal, wait)
      return queue.first === wait
    } finally {
      const wasFirst = queue.first === wait
      queue.remove(place)
      if (queue.first === undefined) this.queues.delete(name)
      else if (wasFirst && wait.request.signal?.aborted) this.sleepers.wake(queue.first)
    }
  }

  private wakeAll(name: string): void {
    for (const wait of [...(this.queues.get(name) ?? [])]) this.sleepers.wake(wait)
  }
}
