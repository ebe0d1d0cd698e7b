import { type Handed, type LeaseStep, LimitStep, NOTHING, type RecordRules } from './lease-step.js'

/** Twin of `lua/steps/fixed-window.lua`. */
export class FixedStep extends LimitStep {
  private begin = 0
  private count = 0

  isOver(): boolean {
    return this.count === 0
  }

  carried(other: FixedStep): void {
    this.count = Math.min(other.count, this.limit)
  }

  override relieved(tokens: number): void {
    this.count = Math.max(this.count - tokens, 0)
  }

  filled(tokens: number): void {
    this.count = Math.max(this.count, Math.min(this.count + tokens, this.limit))
  }

  read(nowUs: number): void {
    const begin = nowUs - (nowUs % this.windowUs)
    if (begin > this.begin) this.count = 0
    this.begin = begin
  }

  protected debtAt(): number {
    return this.count
  }

  protected leased(nowUs: number, want: number, least: number): Handed {
    const availableNow = Math.min(Math.max(this.limit - this.count, 0), want)
    if (availableNow < least) return NOTHING
    this.count += availableNow
    return { availableNow, availableLater: 0, laterUs: 0, endUs: this.begin + this.windowUs - nowUs }
  }

  protected taken(_nowUs: number, cost: number): boolean {
    if (this.count + cost > this.limit) return false
    this.count += cost
    return true
  }

  protected returned(tokens: number, leasedUs: number): void {
    if (leasedUs >= this.begin && leasedUs < this.begin + this.windowUs) this.count = Math.max(this.count - tokens, 0)
  }

  protected untilNewUs(nowUs: number): number {
    return this.count === 0 ? 0 : this.begin + this.windowUs - nowUs
  }

  protected freeUs(nowUs: number, cost: number): number {
    return this.count + cost <= this.limit ? 0 : this.begin + this.windowUs - nowUs
  }
}

/** Twin of `lua/steps/sliding-window.lua`. */
export class SlidingStep extends LimitStep {
  private number = 0
  private previous = 0
  private current = 0
  private atUs = 0
  private readonly rules: RecordRules

  constructor(numbers: readonly number[], rules: RecordRules) {
    super(numbers)
    this.rules = rules
  }

  isOver(): boolean {
    return this.previous + this.current === 0
  }

  carried(other: SlidingStep): void {
    this.previous = Math.min(other.previous, this.limit)
    this.current = Math.min(other.current, this.limit)
  }

  override relieved(tokens: number): void {
    this.current = Math.max(this.current - tokens, 0)
  }

  filled(tokens: number, by: SlidingStep, _others: readonly LeaseStep[], isLease: boolean): void {
    const below = isLease && this.rules.fillsBeyond ? Math.min(by.limit - by.debtAt(this.atUs), 0) : 0
    const faded = Math.floor((this.previous * (this.endUs - this.atUs)) / this.windowUs)
    this.current += Math.max(Math.min(tokens, this.limit - this.current - faded - below), 0)
  }

  read(nowUs: number): void {
    this.atUs = nowUs
    const number = Math.floor(nowUs / this.windowUs)
    if (this.number >= number) return
    this.previous = this.number === number - 1 ? this.current : 0
    this.current = 0
    this.number = number
  }

  protected debtAt(nowUs: number): number {
    return this.current + Math.ceil((this.previous * (this.endUs - nowUs)) / this.windowUs)
  }

  protected leased(nowUs: number, want: number, least: number, horizonUs: number): Handed {
    const { endUs } = this
    const freeAt = (us: number): number => Math.min(Math.max(this.limit - this.debtAt(us), 0), want)
    const availableNow = freeAt(nowUs)
    const availableLater = freeAt(Math.min(nowUs + horizonUs, endUs - 1)) - availableNow
    if (availableNow + availableLater < least) return NOTHING
    this.current += availableNow + availableLater
    return { availableNow, availableLater, laterUs: this.freeUs(nowUs, 0), endUs: endUs - nowUs }
  }

  protected taken(nowUs: number, cost: number): boolean {
    if (this.debtAt(nowUs) + cost > this.limit) return false
    this.current += cost
    return true
  }

  protected returned(tokens: number, leasedUs: number): void {
    if (Math.floor(leasedUs / this.windowUs) === this.number) this.current = Math.max(this.current - tokens, 0)
  }

  protected untilNewUs(nowUs: number): number {
    if (this.current > 0) return this.endUs + this.windowUs - nowUs
    return this.previous > 0 ? this.endUs - nowUs : 0
  }

  protected freeUs(nowUs: number, cost: number): number {
    const { endUs, windowUs, limit } = this
    const here = this.within(this.previous, limit - this.current - cost, nowUs, endUs)
    return (here < endUs ? here : this.within(this.current, limit - cost, endUs, endUs + windowUs)) - nowUs
  }

  private get endUs(): number {
    return (this.number + 1) * this.windowUs
  }

  private within(fading: number, room: number, fromUs: number, endUs: number): number {
    if (room < 0) return endUs
    if (fading <= room) return fromUs
    return Math.max(fromUs, endUs - Math.floor((this.windowUs * room) / fading))
  }
}
