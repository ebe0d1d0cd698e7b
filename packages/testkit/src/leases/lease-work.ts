import type { HoldOperation, OpenHold } from '../../../sluicegate/dist/shared/backend.js'
import type { HoldStepped } from '../../../sluicegate/dist/shared/holds/hold-step.js'

/** What a process believes of its grants. */
export interface WorkRules {
  /** When a grant ends, by the process's clock: it was asked for, and came, at these times, and lasts so long at the authority. */
  endsUs(sentUs: number, arrivedUs: number, forUs: number): number
  /** What of a grant is left after a report whose answer was lost. */
  leftOfLost(granted: number, reported: number): number
  /** What of a new grant is spent: all that was since it was asked for, of which so much is of a grant that has not ended. */
  spentOfNext(since: number, ofStanding: number): number
}

/** For the pace of clocks, as in `shared/holds/shared-work.ts`. */
const PACE = 0.999

/** Those of the library. */
export const SOUND_WORK: WorkRules = {
  endsUs: (sentUs, _arrivedUs, forUs) => sentUs + forUs * PACE,
  leftOfLost: (granted, reported) => granted - reported,
  spentOfNext: (since) => since,
}

type Step = Pick<HoldOperation, 'hold' | 'want' | 'least' | 'isDebt'>

/** Open work of a process of a simulated fleet: what it spends of its grant, and reports, as `SharedWork` does. Times are of the process's clock. */
export class LeaseWork {
  isAsking = false
  untilUs = Number.NEGATIVE_INFINITY
  private readonly rules: WorkRules
  private readonly ttlUs: number
  private stood: OpenHold | undefined
  private granted = 0
  private spent = 0
  private sinceAsked = 0
  private isLost = false

  constructor(rules: WorkRules, ttlUs: number) {
    this.rules = rules
    this.ttlUs = ttlUs
  }

  spend(nowUs: number, cost: number): boolean {
    this.endIfOver(nowUs)
    if (nowUs >= this.untilUs || this.spent + cost > this.granted) return false
    this.spent += cost
    this.sinceAsked += cost
    return true
  }

  /** What it asks the authority for. */
  asks(nowUs: number, step: Step): HoldOperation {
    this.endIfOver(nowUs)
    this.sinceAsked = 0
    const spent = this.isLost ? 0 : this.spent
    // What it has is spent on meanwhile.
    const want = step.hold === 'rest' ? Math.max(step.want, this.granted - this.spent) : step.want
    return { verb: 'hold', key: 'k', id: 0, ttlUs: this.ttlUs, before: this.stood, spent, ...step, want }
  }

  answered({ done, hold }: HoldStepped, { spent }: HoldOperation, sentUs: number, arrivedUs: number): void {
    if (!done || hold === undefined) return
    this.stood = hold
    this.spent = this.isLost ? 0 : this.rules.spentOfNext(this.sinceAsked, Math.max(0, this.spent - spent))
    this.isLost = false
    this.granted = hold.granted
    this.untilUs = this.rules.endsUs(sentUs, arrivedUs, hold.forUs)
  }

  /** No answer came: the step may have been made. */
  lost({ spent }: HoldOperation): void {
    if (!this.isLost) {
      this.granted = this.rules.leftOfLost(this.granted, spent)
      this.spent -= spent
    }
    this.isLost = true
    this.stood = undefined
  }

  private endIfOver(nowUs: number): void {
    if (nowUs < this.untilUs) return
    this.isLost = false
    this.stood = undefined
    this.granted = 0
    this.spent = 0
  }
}
