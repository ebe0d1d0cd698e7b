import type { Timeline } from 'sluicegate-testkit/leases/timeline.js'
import type { Clock } from '../../../packages/sluicegate/dist/time/clock.js'

/** The clock of a simulation, whose promises are settled before its time moves on. */
export class TimelineClock implements Clock {
  /** Whether a promise may have been resolved since. */
  isUnsettled = false
  readonly #timeline: Timeline
  #turns = 1

  constructor(timeline: Timeline) {
    this.#timeline = timeline
  }

  nowMs(): number {
    return this.#timeline.nowUs / 1000
  }

  after(ms: number, run: () => void): () => void {
    let isCancelled = false
    this.#timeline.inUs(Math.max(0, Math.ceil(ms * 1000)), () => {
      if (isCancelled) return
      this.isUnsettled = true
      // A timeout waits for turns of the event loop, in which sockets would be read.
      this.#turns = 3
      run()
    })
    return () => {
      isCancelled = true
    }
  }

  async settle(): Promise<void> {
    this.isUnsettled = false
    for (let turns = this.#turns; turns > 0; turns--) await new Promise<void>((resolve) => void setImmediate(resolve))
    this.#turns = 1
  }
}
