import { type Handed, LimitStep, NOTHING } from './lease-step.js'

/** Twin of `lua/steps/sliding-log.lua`: one log for all numbers, of which those are asked that were put in force. */
export class LogStep extends LimitStep {
  private leaseUs = 0
  private nowUs = 0
  private lastUs = 0
  private entries: { readonly us: number; readonly cost: number }[] = []
  private cost = 0

  constructor(numbers: readonly number[]) {
    super(numbers)
    this.numbers = numbers
  }

  set numbers([limit = 0, windowUs = 0, leaseUs = 0]: readonly number[]) {
    this.limit = limit
    this.windowUs = windowUs
    this.leaseUs = leaseUs
  }

  isOver(): boolean {
    return this.entries.length === 0
  }

  carried(): void {
    throw new RangeError('there is one log for all')
  }

  filled(): void {
    throw new RangeError('there is one log for all')
  }

  charge(tokens: number): void {
    this.lastUs = Math.max(this.nowUs, this.lastUs)
    this.write(tokens)
  }

  read(nowUs: number): void {
    this.nowUs = nowUs
    const gone = this.entries.findIndex(({ us }) => us > nowUs - this.windowUs)
    for (const { cost } of this.entries.splice(0, gone < 0 ? this.entries.length : gone)) this.cost -= cost
  }

  protected debtAt(): number {
    return this.isClosed ? this.limit : this.used
  }

  protected leased(nowUs: number, want: number, least: number): Handed {
    const tokens = this.isClosed ? 0 : Math.min(Math.max(this.limit - this.used, 0), want)
    if (tokens < least) return NOTHING
    this.lastUs = nowUs + this.leaseUs
    this.write(tokens)
    return { tokens, endUs: this.leaseUs }
  }

  protected taken(nowUs: number, cost: number): boolean {
    if (this.isClosed || this.used + cost > this.limit) return false
    this.lastUs = Math.max(nowUs, this.lastUs)
    this.write(cost)
    return true
  }

  protected returned(tokens: number, leasedUs: number): void {
    const us = leasedUs + this.leaseUs
    // The newest time stays, whatever comes back of it.
    if (us !== this.lastUs) return
    let left = tokens
    for (let entry = this.entries.at(-1); entry?.us === us && left > 0; entry = this.entries.at(-1)) {
      this.entries.pop()
      this.cost -= entry.cost - Math.max(entry.cost - left, 0)
      if (entry.cost > left) this.entries.push({ us, cost: entry.cost - left })
      left -= Math.min(left, entry.cost)
    }
  }

  protected untilNewUs(nowUs: number): number {
    const newest = this.entries.at(-1)
    return newest === undefined || newest.us <= this.opensUs - this.windowUs ? this.opensUs - nowUs : newest.us + this.windowUs - nowUs
  }

  protected freeUs(nowUs: number, cost: number): number {
    let over = this.used + cost - this.limit
    for (const entry of this.isClosed ? this.live : this.entries) {
      if (over <= 0) break
      over -= entry.cost
      if (over <= 0) return entry.us + this.windowUs - nowUs
    }
    return this.opensUs - nowUs
  }

  private get used(): number {
    return this.isClosed ? this.live.reduce((sum, { cost }) => sum + cost, 0) : this.cost
  }

  private write(cost: number): void {
    this.entries.push({ us: this.lastUs, cost })
    this.cost += cost
  }

  private get live(): readonly { readonly us: number; readonly cost: number }[] {
    return this.entries.filter(({ us }) => us > this.opensUs - this.windowUs)
  }

  /** The first moment at which a request would not be written before the newest. */
  private get opensUs(): number {
    return Math.max(this.nowUs, this.lastUs - this.leaseUs)
  }

  private get isClosed(): boolean {
    return this.opensUs > this.nowUs
  }
}
