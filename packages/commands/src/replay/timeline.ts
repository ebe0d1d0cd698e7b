/** Points of the plot; when they are used up, each holds twice the time. */
const MAX_POINTS = 720
const SECOND_MS = 1_000

/** Counts over time in constant memory: the width of a point doubles when the log turns out longer. */
export class Timeline {
  /** Milliseconds of a point. */
  pointMs = SECOND_MS
  /** Unix milliseconds at which the first point begins; NaN before the first count. */
  startMs = Number.NaN
  /** Points in use. */
  length = 0
  readonly #series: readonly Float64Array[]

  constructor(series: number) {
    this.#series = Array.from({ length: series }, () => new Float64Array(MAX_POINTS))
  }

  /** The point of a time that is not before the last one given. */
  pointOf(timeMs: number): number {
    if (Number.isNaN(this.startMs)) this.startMs = Math.floor(timeMs / SECOND_MS) * SECOND_MS
    let point = Math.floor((timeMs - this.startMs) / this.pointMs)
    while (point >= MAX_POINTS) {
      this.#halve()
      point = Math.floor((timeMs - this.startMs) / this.pointMs)
    }
    if (point >= this.length) this.length = point + 1
    return point
  }

  add(series: number, point: number): void {
    const counts = this.#series[series] as Float64Array
    counts[point] = (counts[point] as number) + 1
  }

  /** Counts of a series, a number for each point. */
  counts(series: number): number[] {
    return Array.from((this.#series[series] as Float64Array).subarray(0, this.length))
  }

  #halve(): void {
    for (const counts of this.#series) {
      for (let i = 0; i < MAX_POINTS / 2; i++) counts[i] = (counts[2 * i] as number) + (counts[2 * i + 1] as number)
      counts.fill(0, MAX_POINTS / 2)
    }
    this.length = Math.ceil(this.length / 2)
    this.pointMs *= 2
  }
}
