import type { LoadOutcome } from '../load-plan.js'

/** A connection that answers its requests in their order. */
export interface PooledConnection {
  /** Requests that wait for an answer. */
  readonly outstanding: number
  send(key: string): Promise<LoadOutcome>
  close(): void
}

interface Waiting {
  readonly key: string
  readonly answer: (outcome: LoadOutcome) => void
}

/** Spreads requests over connections; those beyond `depth` a connection wait for one, first come, first served. */
export class RequestPool {
  readonly #connections: readonly PooledConnection[]
  readonly #depth: number
  readonly #waiting: Waiting[] = []
  #firstWaiting = 0
  #next = 0

  constructor(connections: readonly PooledConnection[], depth: number) {
    this.#connections = connections
    this.#depth = depth
  }

  send(key: string): Promise<LoadOutcome> {
    // While others wait all connections are busy: to look for a free one would cost a look at each.
    const free = this.#waiting.length === 0 ? this.#free() : undefined
    return new Promise((answer) => {
      if (free === undefined) this.#waiting.push({ key, answer })
      else this.#sendOn(free, { key, answer })
    })
  }

  close(): void {
    for (const connection of this.#connections) connection.close()
    for (const { answer } of this.#waiting.splice(0).slice(this.#firstWaiting)) answer('error')
  }

  #sendOn(connection: PooledConnection, { key, answer }: Waiting): void {
    void connection.send(key).then((outcome) => {
      this.#advance(connection)
      answer(outcome)
    })
  }

  #advance(free: PooledConnection): void {
    const next = this.#waiting[this.#firstWaiting]
    if (next === undefined || free.outstanding >= this.#depth) return
    this.#firstWaiting++
    if (this.#firstWaiting === this.#waiting.length || this.#firstWaiting > 10_000) {
      this.#waiting.splice(0, this.#firstWaiting)
      this.#firstWaiting = 0
    }
    this.#sendOn(free, next)
  }

  #free(): PooledConnection | undefined {
    const all = this.#connections
    for (let tried = 0; tried < all.length; tried++) {
      const connection = all[this.#next++ % all.length] as PooledConnection
      if (connection.outstanding < this.#depth) return connection
    }
    return undefined
  }
}
