/** Of what has had no answer for this long the turn goes on: a driver may lose a statement for ever. */
const LOST_MS = 4000

interface Turn {
  sinceMs: number
}

/** Lets so much be under way at once; the rest waits for its turn. */
export class Turns {
  private readonly most: number
  /** The oldest first. */
  private readonly underWay = new Set<Turn>()
  private readonly queue: { readonly turn: Turn; begin(): void }[] = []
  private isWatched = false

  constructor(most: number) {
    this.most = most
  }

  async run<Result>(work: () => Promise<Result>): Promise<Result> {
    const turn: Turn = { sinceMs: 0 }
    if (this.underWay.size < this.most) this.begin(turn)
    else {
      await new Promise<void>((begin) => {
        this.queue.push({ turn, begin })
        this.watch()
      })
    }
    try {
      return await work()
    } finally {
      this.end(turn)
    }
  }

  private begin(turn: Turn): void {
    turn.sinceMs = performance.now()
    this.underWay.add(turn)
  }

  private end(turn: Turn): void {
    if (!this.underWay.delete(turn)) return
    const next = this.queue.shift()
    if (next === undefined) return
    this.begin(next.turn)
    next.begin()
  }

  /** While something waits: ends the turn of the oldest in time. */
  private watch(): void {
    const [oldest] = this.underWay
    if (this.isWatched || this.queue.length === 0 || oldest === undefined) return
    this.isWatched = true
    const dueMs = oldest.sinceMs + LOST_MS
    setTimeout(
      () => {
        this.isWatched = false
        if (performance.now() >= dueMs) this.end(oldest)
        this.watch()
      },
      Math.max(1, dueMs - performance.now()),
    )
  }
}
