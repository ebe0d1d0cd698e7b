import type { Awaitable } from '../../awaitable.js'
import type { Decision } from '../../decision/decision.js'
import { type AnyHold, checkSpent, learnedBy, type OpenRequest } from '../../holds/hold.js'
import type { Work } from '../../holds/opened-hold.js'
import type { Alert } from '../../waiting/alarm.js'
import { type Answer, decisionOf, type HoldOperation, type OpenHold } from '../backend.js'
import { AHEAD_US, type HoldStep, type WorkPlace } from './work-place.js'

/** What of a grant is left when the next is asked for. */
const LOW_SHARE = 0.1
/** How long a hold has at least to last at the store, in ttls: what was spent is reported after one, and has to come in time. */
const LEAST_TTLS = 1.25
/** Beyond its hold it is granted less ahead: others need what is free. */
const BEYOND_US = AHEAD_US / 4
/** For the pace of clocks. */
const PACE = 0.999

/** A report whose answer did not come in time: the store may have made it. */
interface LostReport {
  /** What it says is spent. */
  readonly reported: number
  /** Tokens of the grant that were spent since. */
  spent: number
}

/** What a step does. */
type Moved = Pick<HoldOperation, 'spent' | 'hold' | 'want' | 'late'> & { readonly least?: number; readonly isDebt?: boolean }

/**
 * Work that is open over a store. Of its hold the store grants tokens, which `add` spends here; a step reports what was spent, and is granted more.
 * There is one step at a time. Pieces that are spent meanwhile are of the same grant, which the step does not lessen.
 */
export class SharedWork implements Work<'later'>, Alert {
  used = 0
  over = 0
  // As an alert.
  dueUs = 0
  order = 0
  place = -1
  private readonly shared: WorkPlace
  private readonly step: HoldStep
  private readonly request: OpenRequest
  /** Its hold of the share of an outage, in which it began, until the store answers again. */
  private outside: AnyHold | undefined
  private readonly beganUs: number
  /** As the store left it; undefined when nothing is known to be held. */
  private stood: OpenHold | undefined
  /** Tokens of the grant, and those of them that were spent since the last report. */
  private granted = 0
  private spent = 0
  /** Tokens of all grants that were spent. */
  private drawn = 0
  /** Until its answer comes, late, the store charges all of the grant when that ends. */
  private lostReport: LostReport | undefined
  /** When the grant ends. */
  private untilUs = Number.NEGATIVE_INFINITY
  private lastUs: number
  /** Free at the store as of its last answer. */
  private free = 0
  /** What was refused: the work would have cost as much more. */
  private missed = 0
  /** Spent as debt in an outage. */
  private owed = 0
  private isClosed = false
  private ended: Promise<Decision> | undefined
  private renewal: Promise<unknown> | undefined
  private pending: Promise<boolean> | undefined
  /** While a step is on its way: what was drawn before, and is of no grant of its answer. */
  private drawnBefore: number | undefined
  /** Ends a wait when the work closes. */
  private closing: AbortController | undefined

  constructor(shared: WorkPlace, step: HoldStep, request: OpenRequest, outside?: AnyHold) {
    this.shared = shared
    this.step = step
    this.request = request
    this.outside = outside
    this.beganUs = shared.ticker.read()
    this.lastUs = this.beganUs
    shared.open.add(this)
    shared.alarm.set(this, this.beganUs + request.ttlUs, step.id)
  }

  get isOver(): boolean {
    return this.isClosed
  }

  get held(): number {
    if (this.isClosed) return 0
    if (this.outside !== undefined) return this.outside.held
    if (this.shared.ticker.read() >= this.untilUs) return 0
    return (this.stood?.rest ?? 0) + this.granted - this.spent
  }

  /** Tokens that it may spend without waiting, as far as is known. */
  affordable(): number {
    if (this.isClosed) return 0
    return Math.min(this.request.most - this.used, this.outside?.affordable(1) ?? this.held + this.free)
  }

  add(cost: number): Awaitable<boolean> {
    checkSpent(cost)
    if (this.isClosed) return false
    if (this.pending !== undefined) return this.behind(cost)
    if (cost > this.request.most - this.used) return this.refused(cost)
    const us = this.shared.ticker.read()
    if (this.spend(cost, us)) return true
    const pending = this.grown(cost).finally(() => {
      if (this.pending === pending) this.pending = undefined
    })
    this.pending = pending
    return pending
  }

  /** Once: later calls get the same answer. @param cost undefined: what was added counts. */
  async close(cost: number | undefined): Promise<Decision> {
    if (cost !== undefined) checkSpent(cost)
    this.ended ??= this.end(cost)
    return this.ended
  }

  private async end(cost: number | undefined): Promise<Decision> {
    const { key } = this.step
    this.isClosed = true
    this.shared.open.delete(this)
    this.shared.alarm.clear(this)
    this.closing?.abort()
    this.endOutside()
    await Promise.allSettled([this.pending, this.renewal])
    const missing = Math.max(0, (cost ?? this.used) - this.used)
    const whole = cost ?? this.used + this.missed
    // Work that was called off before it began says nothing of what work costs.
    if (cost !== undefined || whole > 0) this.shared.learned.add(learnedBy(key), whole)
    this.shared.ran(this.used, this.lastUs - this.beganUs)
    this.endIfOver(this.shared.ticker.read())
    const spent = this.reported() + missing + this.owed
    this.used += missing
    if (this.stood === undefined && spent === 0) return this.seen()
    const isOut = this.isOut()
    const answer = isOut ? undefined : await this.shared.answerTo(this.operation({ spent, hold: 0, want: 0, isDebt: true }))
    if (answer === undefined) {
      if (missing + this.owed > 0) this.shared.inForce.now.outage.owe(key, missing + this.owed)
      // What nobody has reported by its end is charged. What was sent may have been done.
      if (isOut) this.watch(this.request.ttlUs / 8)
      else this.stood = undefined
      return this.seen()
    }
    this.stood = undefined
    this.shared.freed(key, answer.decision)
    this.over += answer.hold?.over ?? 0
    return decisionOf(answer)
  }

  /** Its ttl is over, or it has closed in an outage: what is left is free, and it has cost what was added. */
  ring(nowUs: number): void {
    this.endIfOver(nowUs)
    const dueUs = this.isClosed ? nowUs : this.lastUs + this.request.ttlUs
    const isHeld = this.stood !== undefined && this.isOut()
    if (dueUs > nowUs || this.pending !== undefined || this.renewal !== undefined || isHeld) {
      this.shared.alarm.set(this, Math.max(dueUs, nowUs + this.request.ttlUs / 8), this.step.id)
      return
    }
    this.shared.open.delete(this)
    void this.given()
  }

  /** Takes over what the store says. @param drawn when it was asked: what was spent since is of what it grants, also where the grant before has ended. */
  answered({ done, decision, hold }: Answer, sentUs: number, drawn = this.drawn): void {
    this.free = decision?.remaining ?? 0
    if (hold === undefined) return
    this.stood = hold
    // Of several keys on several servers some may have moved.
    if (!done) return
    const isOther = this.lostReport !== undefined
    this.forgetLost()
    this.spent = isOther ? 0 : this.drawn - drawn
    this.granted = hold.granted
    this.untilUs = sentUs + hold.forUs * PACE
  }

  /** Of the grant, if that is enough. */
  private spend(cost: number, us: number): boolean {
    this.endIfOver(us)
    const left = this.granted - this.spent - cost
    if (left < 0 || us >= this.untilUs) return false
    this.draw(cost)
    this.lastUs = us
    if (this.renewal === undefined && this.isDue(left, us)) this.renew(us)
    return true
  }

  private draw(cost: number): void {
    this.spent += cost
    this.drawn += cost
    this.used += cost
  }

  private isDue(left: number, us: number): boolean {
    if (this.untilUs - us < this.request.ttlUs * LEAST_TTLS) return true
    return left < this.granted * LOW_SHARE && (this.stood?.rest ?? 0) > 0
  }

  /** Ahead of need. */
  private renew(us: number): void {
    if (this.isOut()) return
    const left = this.granted - this.spent
    const renewal = this.moved(Math.max(left, Math.min(this.ahead(us), left + (this.stood?.rest ?? 0))), 0).catch(() => undefined)
    this.renewal = renewal.finally(() => {
      this.renewal = undefined
    })
  }

  /** Reports what was spent, and has `want` granted, `least` at least. */
  private async moved(want: number, least: number): Promise<Answer | undefined> {
    return this.asked({ spent: this.reported(), hold: 'rest', want, least })
  }

  /** One step. @param cost of `spent`, what is no report. */
  private async asked(moved: Moved, cost = 0): Promise<Answer | undefined> {
    const spent = moved.spent - cost
    const sentUs = this.shared.ticker.read()
    const report: LostReport = { reported: spent, spent: 0 }
    const late = (hold: OpenHold, done: boolean): number | undefined => this.answeredLate(hold, done, sentUs, report, cost)
    this.drawnBefore = this.drawn
    try {
      const answer = await this.shared.answerTo(this.operation({ ...moved, late }))
      if (answer !== undefined) this.answered(answer, sentUs, this.drawnBefore)
      else this.lost(spent, report, cost)
      return answer
    } finally {
      this.drawnBefore = undefined
    }
  }

  private reported(): number {
    return this.lostReport === undefined ? this.spent : 0
  }

  private operation(moved: Moved): HoldOperation {
    return { least: 0, ...this.step, before: this.stood, ...moved }
  }

  /** Nothing is known of the hold: it ends by itself, and what was granted of it is charged then. Until then the rest of the grant may be spent. */
  private lost(spent: number, report: LostReport, cost: number): void {
    if (this.lostReport === undefined) {
      // What is charged beyond the grant takes the rest of it along.
      this.granted = cost > 0 ? 0 : this.granted - spent
      this.spent -= spent
      this.lostReport = report
    }
    this.stood = undefined
  }

  /**
   * The answer to a report comes after all. Returns what was spent, where the work does not go on with what it grants.
   *
   * @param done false: what was reported is not charged yet.
   * @param cost of a piece that was debt, and is charged now.
   */
  private answeredLate(hold: OpenHold, done: boolean, sentUs: number, report: LostReport, cost: number): number | undefined {
    if (done) this.owed = Math.max(0, this.owed - cost)
    const unreported = done ? 0 : report.reported
    if (report !== this.lostReport) return report.spent + unreported
    if (this.isClosed) return this.spent + unreported
    this.lostReport = undefined
    if (this.drawnBefore !== undefined) {
      // The step on its way knows nothing of this hold, and has another granted.
      const { spent } = this
      this.drawnBefore = this.drawn
      this.granted = 0
      this.spent = 0
      return spent + unreported
    }
    this.stood = hold
    this.granted = hold.granted
    this.spent += unreported
    if (done) this.untilUs = sentUs + hold.forUs * PACE
    this.watch()
    return undefined
  }

  private endIfOver(us: number): void {
    if (us < this.untilUs) return
    this.forgetLost()
    this.stood = undefined
    this.granted = 0
    this.spent = 0
  }

  /** Another grant takes the place of the one that was reported. */
  private forgetLost(): void {
    if (this.lostReport !== undefined) this.lostReport.spent = this.spent
    this.lostReport = undefined
  }

  /** A piece for which the grant is not enough. */
  private async grown(cost: number): Promise<boolean> {
    await this.renewal
    if (this.isClosed) return false
    const us = this.shared.ticker.read()
    if (this.spend(cost, us)) return true
    if (this.isOut()) return this.without(cost)
    const ahead = Math.min(Math.max(this.ahead(us, BEYOND_US), this.outside?.held ?? 0), this.request.most - this.used)
    const answer = await this.moved(Math.max(cost, ahead), cost)
    if (answer === undefined) return this.without(cost)
    this.endOutside()
    this.watch()
    if (answer.done) {
      this.draw(cost)
      this.lastUs = this.shared.ticker.read()
      return true
    }
    return this.beyond(cost)
  }

  /** Neither held nor free. */
  private async beyond(cost: number): Promise<boolean> {
    const { over } = this.request
    if (over === 'wait') return this.waited(cost)
    if (over === 'cut') return this.refused(cost)
    const answer = await this.asked({ spent: this.reported() + cost, hold: 'rest', want: 0, isDebt: true }, cost)
    if (answer === undefined) return this.without(cost)
    this.used += cost
    this.over += answer.hold?.over ?? 0
    return true
  }

  /** What is still held is free meanwhile: it waits for the whole piece. */
  private async waited(cost: number): Promise<boolean> {
    const { waiting } = this.shared
    const { key } = this.step
    await this.given()
    if (this.isClosed) return false
    this.closing ??= new AbortController()
    const options = { cost, maxWait: this.request.ttlUs / 1000, signal: this.closing.signal }
    try {
      const { decision } = await waiting.wait(key, options, true)
      if (!decision.allowed) return this.refused(cost)
      this.used += cost
      this.lastUs = this.shared.ticker.read()
      return true
    } catch (error) {
      if (this.isClosed) return false
      throw error
    }
  }

  /** Frees what is held, and reports what was spent of it. */
  private async given(): Promise<void> {
    const { stood } = this
    if (stood === undefined) return
    const operation = this.operation({ spent: this.reported(), hold: 0, want: 0, isDebt: true })
    this.stood = undefined
    this.granted = 0
    this.spent = 0
    this.untilUs = Number.NEGATIVE_INFINITY
    const answer = await this.shared.answerTo(operation).catch(() => undefined)
    this.free = answer?.decision?.remaining ?? this.free
    this.shared.freed(this.step.key, answer?.decision)
  }

  /** In an outage the piece is spent of the share: of the hold with which the work began there, else as a take is decided. */
  private async without(cost: number): Promise<boolean> {
    const passes = await this.passesWithout(cost)
    const isDebt = !passes && this.request.over === 'finish' && !this.isClosed
    if (!passes && !isDebt) return this.refused(cost)
    if (isDebt) {
      this.owed += cost
      this.over += cost
    }
    this.used += cost
    this.lastUs = this.shared.ticker.read()
    return true
  }

  private passesWithout(cost: number): Awaitable<boolean> {
    if (this.outside !== undefined) return this.outside.add(cost)
    return cost === 0 || this.shared.inForce.fallback.takeWithout(this.step.key, cost).allowed
  }

  /** What is still held of the share is free. */
  private endOutside(): void {
    this.outside?.[Symbol.dispose]()
    this.outside = undefined
  }

  private isOut(): boolean {
    const { guard } = this.shared.inForce.now
    const { key } = this.step
    return (typeof key === 'string' ? [key] : key).some((own) => guard.pausedMs(own) > 0)
  }

  /** Tokens for the pieces of the next while, at the pace of those before. */
  private ahead(us: number, forUs = AHEAD_US): number {
    const ranUs = Math.max(us - this.beganUs, AHEAD_US / 8)
    return Math.max(1, Math.ceil((this.used * forUs) / ranUs))
  }

  private watch(forUs = this.request.ttlUs): void {
    if (this.place >= 0) return
    this.shared.open.add(this)
    this.shared.alarm.set(this, this.shared.ticker.read() + forUs, this.step.id)
  }

  private refused(cost: number): false {
    this.missed = Math.max(this.missed, cost)
    return false
  }

  /** After the piece that waits. */
  private async behind(cost: number): Promise<boolean> {
    await this.pending?.catch(() => undefined)
    return this.add(cost)
  }

  private async seen(): Promise<Decision> {
    return decisionOf(await this.shared.inForce.fallback.execute({ verb: 'peek', key: this.step.key, cost: 1 }))
  }
}
