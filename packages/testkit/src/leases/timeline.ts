import { type Due, DueHeap } from '../../../sluicegate/dist/waiting/due-heap.js'

interface Event extends Due {
  run(): void
}

/** What happens in a simulation, one after another, in whole microseconds. */
export class Timeline {
  nowUs: number
  private readonly events = new DueHeap<Event>()
  private order = 0

  constructor(nowUs: number) {
    this.nowUs = nowUs
  }

  /** When the next event is due; `Infinity` when none is to come. */
  get nextUs(): number {
    return this.events.first?.dueUs ?? Number.POSITIVE_INFINITY
  }

  inUs(us: number, run: () => void): void {
    this.events.add({ dueUs: this.nowUs + us, order: this.order++, place: -1, run })
  }

  /** Until nothing is to come, or so much has happened. */
  run(mostEvents: number): void {
    for (let i = 0; i < mostEvents; i++) {
      const { first } = this.events
      if (first === undefined) break
      this.events.remove(first)
      this.nowUs = first.dueUs
      first.run()
    }
  }
}
