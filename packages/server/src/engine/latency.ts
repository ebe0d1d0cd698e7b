/** Upper bounds in seconds: from a decision in cache to one that waited for a store until its timeout. */
export const LATENCY_BOUNDS_S = [
  2.5e-7, 5e-7, 1e-6, 2.5e-6, 5e-6, 1e-5, 2.5e-5, 5e-5, 1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 1e-2, 2.5e-2, 0.1, 0.5,
] as const

/** How long decisions took, counted in fixed buckets: a few nanoseconds an observation, no allocation. */
export class Latency {
  /** Observations a bucket; the last one is for what is above every bound. */
  readonly buckets = new Float64Array(LATENCY_BOUNDS_S.length + 1)
  sumS = 0

  observe(seconds: number): void {
    let bucket = 0
    while (bucket < LATENCY_BOUNDS_S.length && seconds > (LATENCY_BOUNDS_S[bucket] as number)) bucket++
    this.buckets[bucket] = (this.buckets[bucket] as number) + 1
    this.sumS += seconds
  }

  get count(): number {
    return this.buckets.reduce((sum, observations) => sum + observations, 0)
  }
}
