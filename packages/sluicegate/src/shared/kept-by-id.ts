import { BoundedMap } from '../bounded-map.js'

/** Entries checked for each new one, so that ended ones do not add up. */
const LOOKED_AT = 2

/** Values by the ids of the calls that made them, each for a time. Beyond `most` the oldest is forgotten. */
export class KeptById<Value> {
  private readonly entries: BoundedMap<number, { readonly value: Value; untilUs: number }>
  /** Kept between calls: a new iterator would pass the place of every deleted entry again. */
  private sweep: Iterator<readonly [number, { readonly untilUs: number }]>

  constructor(most: number) {
    this.entries = new BoundedMap(most)
    this.sweep = this.entries.entries()
  }

  get(id: unknown): Value | undefined {
    return this.entries.get(id as number)?.value
  }

  /** @param untilUs from then on it is of no use. */
  set(id: number, value: Value, untilUs: number, nowUs: number): void {
    // An iterator keeps all that was removed since it last moved.
    if (this.entries.size === 0) this.sweep = this.entries.entries()
    for (let i = 0; i < LOOKED_AT && this.entries.size > 0; i++) {
      const [oldId, old] = this.next()
      if (old.untilUs <= nowUs) this.entries.delete(oldId)
    }
    this.entries.set(id, { value, untilUs })
  }

  prolong(id: unknown, untilUs: number): void {
    const entry = this.entries.get(id as number)
    if (entry !== undefined) entry.untilUs = untilUs
  }

  delete(id: unknown): void {
    this.entries.delete(id as number)
  }

  values(): Value[] {
    return [...this.entries.values()].map(({ value }) => value)
  }

  /** All, those with the greatest ids first; none is left. */
  takeLatestFirst(): Value[] {
    const latestFirst = [...this.entries].sort(([id], [other]) => other - id)
    this.entries.clear()
    return latestFirst.map(([, { value }]) => value)
  }

  /** The entry after the one checked last, or the first. There is one. */
  private next(): readonly [number, { readonly untilUs: number }] {
    const { done, value } = this.sweep.next()
    if (done !== true) return value
    this.sweep = this.entries.entries()
    return this.sweep.next().value as [number, { readonly untilUs: number }]
  }
}
