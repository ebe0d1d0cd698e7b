import type { Traffic } from './traffic.js'

/** How many of the requests that were counted each source has in the window that ends now: an exact sliding log of a whole traffic. */
export class TrailingCount {
  private readonly traffic: Traffic
  private readonly windowUs: number
  private readonly isCounted: Uint8Array
  private readonly bySource: Uint32Array
  private expired = 0

  constructor(traffic: Traffic, windowMs: number) {
    this.traffic = traffic
    this.windowUs = windowMs * 1000
    this.isCounted = new Uint8Array(traffic.timesUs.length)
    this.bySource = new Uint32Array(traffic.sources)
  }

  /** The count of the nth request's source when that is asked, itself not yet counted. Requests come in their order. */
  before(nth: number): number {
    const { timesUs, asking } = this.traffic
    const nowUs = timesUs[nth] as number
    for (; (timesUs[this.expired] as number) + this.windowUs <= nowUs; this.expired++) {
      const source = asking[this.expired] as number
      this.bySource[source] = (this.bySource[source] as number) - (this.isCounted[this.expired] as number)
    }
    return this.bySource[asking[nth] as number] as number
  }

  /** Counts the nth request. */
  add(nth: number): void {
    const source = this.traffic.asking[nth] as number
    this.isCounted[nth] = 1
    this.bySource[source] = (this.bySource[source] as number) + 1
  }
}
