import type { Decision } from '../decision.js'
import { isPermit } from '../empty-permit.js'
import { isOutage } from '../errors.js'
import type { WaitRequest } from '../wait-request.js'
import { AbortWatch } from '../waiting/abort-watch.js'
import type { Reservations } from './reservations.js'
import type { Sleepers } from './sleepers.js'

/** How often those who wait without the store look whether it is back, at first and at the longest. */
const FIRST_LOOK_MS = 100
const LAST_LOOK_MS = 5_000

/** One caller of `wait`. */
export interface Wait {
  readonly request: WaitRequest
  /** The reading from which on it waits no longer. */
  readonly untilMs: number
  readonly arrival: number
}

/** Waiting while the store cannot be reached. */
export class OutageWaiting {
  private readonly reservations: Reservations
  private readonly sleepers: Sleepers
  private readonly aborts = new AbortWatch()
  private readonly again: (wait: Wait) => Promise<Decision>

  /** @param again asks the store; rejects with `OUTAGE` while that is not back. */
  constructor(reservations: Reservations, sleepers: Sleepers, again: (wait: Wait) => Promise<Decision>) {
    this.reservations = reservations
    this.sleepers = sleepers
    this.again = again
  }

  /** What is decided without the store, or by it, should it be back before: then its whole budget is there again, and not a share. */
  async wait(wait: Wait): Promise<Decision> {
    const { request, untilMs } = wait
    const given = request.signal
    given?.throwIfAborted()
    const over = new AbortController()
    const unwatch = given && this.aborts.add(given, () => over.abort(given.reason))
    const watched = { ...request, signal: over.signal }
    let isOver = false
    const local = this.reservations.waitWithout({ ...watched, maxWaitMs: Math.max(0, untilMs - this.sleepers.nowMs()) }).then((answer) => {
      // Both at once: a place that nobody is told of is free.
      if (isOver && isPermit(answer)) void answer.release()
      return answer
    })
    const store = this.onceBack({ ...wait, request: watched })
    store.catch(() => undefined)
    try {
      return await Promise.race([local, store])
    } finally {
      isOver = true
      unwatch?.()
      over.abort()
    }
  }

  private async onceBack(wait: Wait): Promise<Decision> {
    for (let pauseMs = FIRST_LOOK_MS; ; pauseMs = Math.min(LAST_LOOK_MS, pauseMs * 1.5)) {
      await this.sleepers.sleep(pauseMs, wait.request.signal)
      try {
        return await this.again(wait)
      } catch (error) {
        if (!isOutage(error)) throw error
      }
    }
  }
}
