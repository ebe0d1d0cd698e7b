import { nameOf } from '../key-name.js'
import type { Key } from '../limiter.js'

/** What goes back in one go; the next go waits for the answers. */
const AT_ONCE = 128
/** How long a booking that is never answered keeps others. */
const LONGEST_MS = 5_000

/** How whoever is asked is doing. */
interface Asked {
  pausedMs(key: string): number
  isSound(key: string): boolean
}

interface GiveBack {
  readonly order: number
  readonly send: () => Promise<unknown>
}

/** Bookings on their way that are waited for together. */
interface Underway {
  count: number
  batch: Batch | undefined
}

interface Batch {
  readonly items: GiveBack[]
  timer: ReturnType<typeof setTimeout> | undefined
}

/** What is known of a key: the bookings sent since the last batch began, and what is to be given back. */
interface Line {
  underway: Underway
  batch: Batch | undefined
}

/**
 * Bookings that nobody wants any more, given back the newest first: of most nothing comes back once somebody booked after them. What
 * comes together goes together, and so does what was booked for nobody when it is answered, so that this waits for what is on its way.
 */
export class GiveBacks {
  private readonly asked: Asked
  private readonly lines = new Map<string, Line>()

  constructor(asked: Asked) {
    this.asked = asked
  }

  /** To be told of each booking that goes out; what it answers is to be called when it was answered or is lost. */
  sent(key: Key): () => void {
    const name = nameOf(key)
    const { underway } = this.lineOf(name)
    underway.count++
    return () => {
      underway.count--
      if (underway.count > 0) return
      if (underway.batch !== undefined) this.soon(key, underway.batch)
      else this.tidy(name)
    }
  }

  /** @param order of two of a key the one that was booked later has the larger one. */
  collect(key: Key, order: number, send: () => Promise<unknown>): void {
    const line = this.lineOf(nameOf(key))
    if (line.batch === undefined) this.begin(key, line)
    line.batch?.items.push({ order, send })
  }

  private begin(key: Key, line: Line): void {
    const batch: Batch = { items: [], timer: undefined }
    const { underway } = line
    line.batch = batch
    line.underway = { count: 0, batch: undefined }
    if (underway.count === 0) {
      this.soon(key, batch)
      return
    }
    underway.batch = batch
    batch.timer = setTimeout(() => this.soon(key, batch), LONGEST_MS)
  }

  /** Who is told together takes a turn or two to say so. */
  private soon(key: Key, batch: Batch): void {
    clearTimeout(batch.timer)
    const name = nameOf(key)
    setImmediate(() =>
      setImmediate(() => {
        const line = this.lines.get(name)
        if (line?.batch !== batch) return
        line.batch = undefined
        this.tidy(name)
        void this.send(typeof key === 'string' ? key : (key[0] as string), batch.items)
      }),
    )
  }

  private async send(key: string, items: readonly GiveBack[]): Promise<void> {
    const newestFirst = [...items].reverse().sort((a, b) => b.order - a.order)
    for (let from = 0; from < newestFirst.length; ) {
      const pausedMs = this.asked.pausedMs(key)
      if (pausedMs > 0) await new Promise((resolve) => setTimeout(resolve, pausedMs))
      // One goes ahead where it is not known whether anybody answers.
      const many = this.asked.isSound(key) ? AT_ONCE : 1
      await Promise.allSettled(newestFirst.slice(from, from + many).map(({ send }) => send()))
      from += many
    }
  }

  private lineOf(name: string): Line {
    let line = this.lines.get(name)
    if (line === undefined) {
      line = { underway: { count: 0, batch: undefined }, batch: undefined }
      this.lines.set(name, line)
    }
    return line
  }

  private tidy(name: string): void {
    const line = this.lines.get(name)
    if (line !== undefined && line.batch === undefined && line.underway.count === 0) this.lines.delete(name)
  }
}
