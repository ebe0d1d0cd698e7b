import { type Handed, LeaseStep, NOTHING } from './lease-step.js'

/** Twin of `lua/steps/rate.lua`; of a rate the debt says the times. */
export class RateStep extends LeaseStep {
  private readonly unitsPerToken: number
  private readonly unitsPerUs: number
  private readonly capacity: number
  private us = 0
  private beyond = 0
  private debt = 0

  constructor([unitsPerToken = 0, unitsPerUs = 0, capacity = 0]: readonly number[]) {
    super()
    this.unitsPerToken = unitsPerToken
    this.unitsPerUs = unitsPerUs
    this.capacity = capacity
  }

  override untilFreeUs(nowUs: number, cost: number): number {
    this.read(nowUs)
    return Math.max(0, Math.ceil((this.debt + cost * this.unitsPerToken - this.capacity) / this.unitsPerUs))
  }

  protected read(nowUs: number): void {
    this.debt = Math.max(0, (this.us - nowUs) * this.unitsPerUs + this.beyond)
  }

  protected debtAt(): number {
    return this.debt
  }

  protected leased(nowUs: number, want: number, least: number, horizonUs: number): Handed {
    const room = this.capacity - this.debt
    const ready = Math.min(Math.max(Math.floor(room / this.unitsPerToken), 0), want)
    const soon = Math.floor((room + horizonUs * this.unitsPerUs) / this.unitsPerToken) - ready
    const later = Math.min(Math.max(soon, 0), want - ready)
    if (ready + later < least) return NOTHING
    this.write(nowUs, ready + later)
    return { ready, later, laterUs: 0, endUs: 0 }
  }

  protected taken(nowUs: number, cost: number): boolean {
    if (this.debt + cost * this.unitsPerToken > this.capacity) return false
    this.write(nowUs, cost)
    return true
  }

  protected returned(): void {
    throw new RangeError('what is not spent of a rate flows back by itself')
  }

  protected untilNewUs(): number {
    return 0
  }

  protected freeUs(): number {
    return 0
  }

  private write(nowUs: number, tokens: number): void {
    this.debt += tokens * this.unitsPerToken
    this.beyond = this.debt % this.unitsPerUs
    this.us = nowUs + (this.debt - this.beyond) / this.unitsPerUs
  }
}
