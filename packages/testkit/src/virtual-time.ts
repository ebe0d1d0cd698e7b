import type { Clock } from '../../sluicegate/dist/time/clock-interface.js'
import { type Due, DueHeap } from '../../sluicegate/dist/waiting/due-heap.js'
import { turns } from './turns.js'

interface Event extends Due {
  run(): void
}

/** What happens in a simulation, one after another; what is due at one time in the order in which it was added. Times are of one unit, that of its user. */
export class Timeline {
  now: number
  private readonly events = new DueHeap<Event>()
  private order = 0

  constructor(now = 0) {
    this.now = now
  }

  /** When the next event is due; `Infinity` when none is to come. */
  get next(): number {
    return this.events.first?.dueUs ?? Number.POSITIVE_INFINITY
  }

  after(delay: number, run: () => void): void {
    this.at(this.now + delay, run)
  }

  /** What is due at a time that has passed comes next, now. */
  at(due: number, run: () => void): void {
    this.events.add({ dueUs: due, order: this.order++, place: -1, run })
  }

  /** Until nothing is to come, or so much has happened. */
  run(mostEvents: number): void {
    for (let i = 0; i < mostEvents; i++) {
      const { first } = this.events
      if (first === undefined) break
      this.events.remove(first)
      this.now = Math.max(this.now, first.dueUs)
      first.run()
    }
  }

  /** All that is due before `end`; `pass` is called at the time of each, before it. */
  runUntil(end: number, pass: () => void = () => undefined): void {
    while (this.next < end) {
      this.now = Math.max(this.now, this.next)
      pass()
      this.run(1)
    }
  }
}

/** A timeline on which promises run to their end between its events, and clocks that read it, each in its own way. */
export class VirtualTime {
  private readonly line = new Timeline()

  get nowUs(): number {
    return this.line.now
  }

  inUs(us: number, run: () => void): void {
    this.line.after(Math.max(0, Math.round(us)), run)
  }

  sleep(us: number): Promise<void> {
    return new Promise((resolve) => this.inUs(us, resolve))
  }

  /** Until then, or until nothing is to come. */
  async runUntil(untilUs: number): Promise<void> {
    await turns()
    while (this.line.next <= untilUs) {
      this.line.run(1)
      await turns()
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
