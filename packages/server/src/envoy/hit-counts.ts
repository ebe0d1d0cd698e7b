/** What became of hits. `shadowed`: over the limit of a rule in shadow mode. */
export type HitOutcome = 'allowed' | 'denied' | 'shadowed' | 'refunded'

export type Hits = Record<HitOutcome, number>

/** Names that come from values of requests: far more would make a metrics system slow. */
const MAX_NAMES = 10_000
const OTHER = 'other'

/** Hits by the name of their rule, or of their values where a rule asks for that; names beyond a bound count as `other`. */
export class HitCounts {
  readonly #hits = new Map<string, Hits>()

  count(name: string, outcome: HitOutcome, hits: number): void {
    const counts = this.#hits.get(name) ?? this.#added(name)
    counts[outcome] += hits
  }

  entries(): IterableIterator<[name: string, hits: Readonly<Hits>]> {
    return this.#hits.entries()
  }

  #added(name: string): Hits {
    const isFull = this.#hits.size >= MAX_NAMES
    const kept = isFull ? this.#hits.get(OTHER) : undefined
    if (kept !== undefined) return kept
    const hits: Hits = { allowed: 0, denied: 0, shadowed: 0, refunded: 0 }
    this.#hits.set(isFull ? OTHER : name, hits)
    return hits
  }
}
