import type { Clock } from '../../../sluicegate/dist/time/clock-interface.js'
import { Timeline } from '../leases/lease-draws.js'

/** Promises that a step settles run before the next step. */
const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

/** A timeline on which promises run to their end between its events, and clocks that read it, each in its own way. */
export class VirtualTime {
  private readonly line = new Timeline(0)

  get nowUs(): number {
    return this.line.nowUs
  }

  inUs(us: number, run: () => void): void {
    this.line.inUs(Math.max(0, Math.round(us)), run)
  }

  sleep(us: number): Promise<void> {
    return new Promise((resolve) => this.inUs(us, resolve))
  }

  /** Until then, or until nothing is to come. */
  async runUntil(untilUs: number): Promise<void> {
    await settled()
    while (this.line.nextUs <= untilUs) {
      this.line.run(1)
      await settled()
    }
  }

  /** A clock that is ahead by an offset, and fast by parts in a million. */
  clock(offsetUs: number, partsPerMillion: number): SkewedClock {
    return new SkewedClock(this, offsetUs, partsPerMillion)
  }
}

export class SkewedClock implements Clock {
  private readonly time: VirtualTime
  private offsetUs: number
  private readonly pace: number

  constructor(time: VirtualTime, offsetUs: number, partsPerMillion: number) {
    this.time = time
    this.offsetUs = offsetUs
    this.pace = 1 + partsPerMillion / 1_000_000
  }

  nowUs(): number {
    return this.offsetUs + Math.floor(this.time.nowUs * this.pace)
  }

  nowMs(): number {
    return this.nowUs() / 1000
  }

  after(ms: number, fn: () => void): () => void {
    let isOver = false
    this.time.inUs(Math.ceil((ms * 1000) / this.pace), () => {
      if (!isOver) fn()
    })
    return () => {
      isOver = true
    }
  }

  /** The clock is set. */
  step(us: number): void {
    this.offsetUs += us
  }
}
