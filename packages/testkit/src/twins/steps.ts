import type { StepLease } from '../../../sluicegate/dist/shared/steps/step-answers.js'
import { type Handed, LeaseStep, LimitStep, NOTHING, type RecordRules } from './lease-step.js'

const LEAST_TOKENS = 2

/** Twin of `lua/steps/rate.lua`, on small numbers, whose products are exact; of a rate the debt says the times. */
export class RateStep extends LeaseStep {
  private readonly unitsPerToken: number
  private readonly unitsPerUs: number
  private readonly capacity: number
  private readonly lent: number
  private readonly rules: RecordRules
  private debt = 0
  private atUs = 0

  constructor([unitsPerToken = 0, unitsPerUs = 0, unlent = 0, capacity = unlent]: readonly number[], rules: RecordRules) {
    super()
    this.unitsPerToken = unitsPerToken
    this.unitsPerUs = unitsPerUs
    this.capacity = capacity
    this.lent = capacity - unlent
    this.rules = rules
  }

  override get whole(): number {
    return this.capacity / this.unitsPerToken
  }

  override isOver(): boolean {
    return this.debt <= 0
  }

  override untilFullUs(nowUs: number): number {
    this.read(nowUs)
    return Math.ceil(this.debt / this.unitsPerUs)
  }

  override untilFreeUs(nowUs: number, cost: number): number {
    this.read(nowUs)
    return Math.max(0, Math.ceil((this.debt + cost * this.unitsPerToken - this.capacity) / this.unitsPerUs))
  }

  read(nowUs: number): void {
    this.debt = Math.max(0, this.debt - (nowUs - this.atUs) * this.unitsPerUs)
    this.atUs = nowUs
  }

  override carried(other: RateStep, others: readonly RateStep[]): void {
    const { countsLent } = this.rules
    const debt = this.unitsOf(Math.max(0, other.debt - (countsLent ? 0 : other.lent)), other) + (countsLent ? 0 : this.lent)
    const lent = Math.max(0, ...others.map((each) => this.unitsOf(each.lent, each)))
    const most = Math.min(this.beyondOf(other), this.capacity + lent)
    const { fastest } = other.metBy(others)
    const us = Math.max(0, ...others.map((each) => each.keptUs))
    const gained = countsLent ? this.unitsPerUs * us - this.unitsOf(fastest.unitsPerUs * us, fastest) : 0
    this.debt = Math.min(debt, most)
    if (gained <= 0) return
    this.debt += gained
    for (const each of others) each.debt += each.unitsOf(gained, this)
  }

  override charge(tokens: number): void {
    this.debt += tokens * this.unitsPerToken
  }

  override leasableAt(nowUs: number): number {
    this.read(nowUs)
    return Math.max(0, Math.floor((this.capacity - Math.max(this.debt, this.rules.leftBy(this.lent))) / this.unitsPerToken))
  }

  override lease(nowUs: number, want: number, least: number, others: readonly RateStep[] = []): StepLease {
    this.read(nowUs)
    const before = this.debt
    this.lends(others)
    const lease = super.lease(nowUs, want, least)
    if (lease.tokens === 0) this.debt = before
    return lease
  }

  private lends(others: readonly RateStep[]): void {
    this.debt = Math.max(this.debt, this.rules.leftBy(this.lent))
    const { tokens, fastest } = this.metBy(others)
    if (fastest === this) return
    this.debt = Math.max(this.debt, this.debtUntil(this.lent / this.unitsPerUs, tokens, fastest))
  }

  override filled(tokens: number, by: RateStep, others: readonly RateStep[], isLease: boolean): void {
    const { tokens: whole, fastest } = by.metBy(others)
    const lentUs = isLease ? by.lent / by.unitsPerUs : 0
    const least = this.rules.countsLent ? this.debtUntil(lentUs, whole, fastest) : 0
    const most = this.beyondOf(by)
    this.debt = Math.min(Math.max(this.debt, least) + tokens * this.unitsPerToken, Math.max(this.debt, most))
  }

  protected debtAt(): number {
    return this.debt
  }

  protected override left(): number {
    return Math.max(0, Math.floor((this.capacity - this.debt) / this.unitsPerToken))
  }

  protected leased(_nowUs: number, want: number, least: number): Handed {
    const tokens = Math.min(this.left(), want)
    if (tokens < least) return NOTHING
    this.debt += tokens * this.unitsPerToken
    return { tokens, endUs: 0 }
  }

  protected taken(_nowUs: number, cost: number): boolean {
    const before = this.rules.takenFrom(this.debt, this.lent)
    if (before + cost * this.unitsPerToken > this.capacity) return false
    this.debt += cost * this.unitsPerToken
    return true
  }

  /** What has flowed back since is none of what comes back. */
  protected returned(tokens: number, leasedUs: number): void {
    const back = tokens * this.unitsPerToken - (this.atUs - leasedUs) * this.unitsPerUs
    this.debt -= Math.max(0, Math.min(back, this.debt - this.lent))
  }

  protected untilNewUs(): number {
    return 0
  }

  protected freeUs(): number {
    return 0
  }

  /** For how long what was lent may still be spent. */
  private get keptUs(): number {
    if (this.lent === 0 || this.debt <= 0) return 0
    const ahead = Math.min(Math.max(this.debt - this.capacity, 0), this.lent)
    return Math.ceil((this.lent + ahead) / this.unitsPerUs)
  }

  private unitsOf(amount: number, other: RateStep): number {
    return Math.ceil((amount * this.unitsPerToken) / other.unitsPerToken)
  }

  private metBy(others: readonly RateStep[]): { readonly tokens: number; readonly fastest: RateStep } {
    let fastest: RateStep = this
    for (const other of others) {
      if (other.unitsPerUs * fastest.unitsPerToken > fastest.unitsPerUs * other.unitsPerToken) fastest = other
    }
    return { tokens: Math.max(this.whole, ...others.map(({ whole }) => whole)), fastest }
  }

  private debtUntil(us: number, tokens: number, fastest: RateStep): number {
    const whole = tokens * this.unitsPerToken
    const flow = this.unitsOf(fastest.unitsPerUs * us, fastest)
    return this.capacity - whole + Math.min(flow, Math.max(whole - LEAST_TOKENS * this.unitsPerToken, 0))
  }

  private beyondOf(other: RateStep): number {
    return this.capacity + this.unitsOf(Math.max(other.debt - other.capacity, 0), other)
  }
}

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

  charge(tokens: number): void {
    this.count += tokens
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
    const tokens = Math.min(Math.max(this.limit - this.count, 0), want)
    if (tokens < least) return NOTHING
    this.count += tokens
    return { tokens, endUs: this.begin + this.windowUs - nowUs }
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

  charge(tokens: number): void {
    this.current += tokens
  }

  filled(tokens: number): void {
    const faded = Math.floor((this.previous * (this.endUs - this.atUs)) / this.windowUs)
    this.current += Math.max(Math.min(tokens, this.limit - this.current - faded), 0)
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

  protected leased(nowUs: number, want: number, least: number): Handed {
    const tokens = Math.min(this.left(nowUs), want)
    if (tokens < least) return NOTHING
    this.current += tokens
    return { tokens, endUs: this.endUs - nowUs }
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
