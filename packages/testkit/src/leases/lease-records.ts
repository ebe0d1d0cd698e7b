import type { Grant, TokenRequest } from '../../../sluicegate/dist/lease/grant.js'
import { KeyLease } from '../../../sluicegate/dist/lease/key-lease.js'
import type { HoldOperation } from '../../../sluicegate/dist/shared/backend.js'
import { type HoldStepped, holdStep } from '../../../sluicegate/dist/shared/holds/hold-step.js'
import { StoredHolds } from '../../../sluicegate/dist/shared/holds/stored-holds.js'
import type { PolicyEncoding } from '../../../sluicegate/dist/shared/steps/policy-encoding.js'
import type { StepLease } from '../../../sluicegate/dist/shared/steps/step-answers.js'
import { type LeaseStep, type RecordRules, SOUND_RECORDS, type StepTake } from '../twins/lease-step.js'
import { LogStep } from '../twins/log-step.js'
import { leaseStepOf } from './leased-fleet.js'

/** What is held of a key, and how it counts. */
export interface HeldRules {
  /** What takes and leases see of it. */
  seen(held: number): number
  /** What is charged of a grant that nobody has reported by its end. */
  lapsed(granted: number): number
}

/** Those of `lua/steps/holds.lua`. */
export const SOUND_HELD: HeldRules = { seen: (held) => held, lapsed: (granted) => granted }

/** Of the numbers of one version of a policy. */
interface LeaseRecord {
  readonly numbers: string
  readonly step: LeaseStep
}

/** One key at the authority under the numbers of several versions of a policy. Twin of `lua/steps/records.lua`, within an hour, for four versions. */
export class LeaseRecords {
  private readonly encoding: PolicyEncoding['name']
  private readonly rules: RecordRules
  private readonly numbersOf: (encoding: PolicyEncoding) => readonly number[]
  private readonly held: HeldRules
  /** Of a policy with one version. */
  private readonly holds = new StoredHolds()
  /** Those written last first. */
  private records: readonly LeaseRecord[] = []
  /** Whether the numbers that are asked about were not known. */
  private isNew = false

  /** @param numbersOf of a version; of others in a mutant. */
  constructor(encoding: PolicyEncoding['name'], rules = SOUND_RECORDS, numbersOf = wholeNumbersOf, held = SOUND_HELD) {
    this.held = held
    this.encoding = encoding
    this.rules = rules
    this.numbersOf = numbersOf
  }

  lease(encoding: PolicyEncoding, nowUs: number, want: number, least: number): StepLease {
    return this.asked(encoding, nowUs, true, (step, others) => {
      const held = this.held.seen(this.holds.total)
      const left = held === 0 ? want : Math.max(0, Math.min(want, step.leasableAt(nowUs) - held))
      const lease = step.lease(nowUs, left, least, others)
      return { answer: lease, passed: lease.tokens }
    })
  }

  /** A step of a hold, and the tokens that it charged. */
  hold(encoding: PolicyEncoding, nowUs: number, operation: HoldOperation): HoldStepped & { readonly charged: number } {
    return this.asked(encoding, nowUs, false, (step) => {
      let charged = 0
      const charge = (tokens: number): void => {
        step.charge(tokens)
        charged += tokens
      }
      const stepped = holdStep([{ holds: this.holds, room: step.remainingAt(nowUs), isBlocked: false, charge }], operation, nowUs)
      return { answer: { ...stepped, charged }, passed: charged }
    })
  }

  take(encoding: PolicyEncoding, nowUs: number, cost: number): StepTake {
    return this.asked(encoding, nowUs, false, (step) => {
      const held = this.held.seen(this.holds.total)
      if (held > 0 && step.remainingAt(nowUs) < cost + held) return { answer: { allowed: false, untilNewUs: 0 }, passed: 0 }
      const take = step.take(nowUs, cost)
      return { answer: take, passed: take.allowed ? cost : 0 }
    })
  }

  giveBack(encoding: PolicyEncoding, nowUs: number, tokens: number, leasedUs: number): void {
    this.asked(encoding, nowUs, false, (step) => {
      const back = step.giveBack(nowUs, tokens, leasedUs)
      for (const other of this.records) if (other.step !== step) other.step.relieved(back)
      // A log keeps its newest time.
      if (back > 0 && this.encoding !== 'sliding-log' && this.records.every((record) => record.step.isOver())) this.records = []
      return { answer: undefined, passed: 0 }
    })
  }

  untilFreeUs(encoding: PolicyEncoding, nowUs: number, cost: number): number {
    return this.asked(encoding, nowUs, false, (step) => ({ answer: step.untilFreeUs(nowUs, cost), passed: 0 }))
  }

  private asked<Answer>(
    encoding: PolicyEncoding,
    nowUs: number,
    isLease: boolean,
    ask: (step: LeaseStep, others: readonly LeaseStep[]) => { readonly answer: Answer; readonly passed: number },
  ): Answer {
    for (const { us, granted } of this.holds.ended(nowUs)) this.lapsed(encoding, us, this.held.lapsed(granted))
    const own = this.recordOf(encoding, nowUs)
    const { step } = own
    if (this.isNew) this.write(own)
    const others = this.records.filter((record) => record !== own).map((record) => record.step)
    const { answer, passed } = ask(step, others)
    for (const other of passed > 0 ? others : []) other.filled(passed, step, others, isLease)
    if (passed > 0) this.write(own)
    // The store remembers nothing of a key that has spent nothing, when its first call is denied.
    else if (this.isNew && this.records.every((record) => record.step.isOver())) this.records = []
    return answer
  }

  /** Charges what a process has not reported, as of the end of its grant. */
  private lapsed(encoding: PolicyEncoding, endUs: number, granted: number): void {
    const own = this.recordOf(encoding, endUs)
    own.step.charge(granted)
    this.write(own)
  }

  /** Records of full keys are removed. */
  private write(own: LeaseRecord): void {
    const isOver = this.records.every(({ step }) => step.isOver())
    this.records = isOver ? [own] : [own, ...this.records.filter((record) => record !== own)]
  }

  private recordOf(encoding: PolicyEncoding, nowUs: number): LeaseRecord {
    const numbers = this.numbersOf(encoding)
    const name = this.encoding === 'sliding-log' ? '' : numbers.join(' ')
    for (const { step } of this.records) step.read(nowUs)
    const known = this.records.find((record) => record.numbers === name)
    if (known?.step instanceof LogStep) known.step.numbers = numbers
    this.isNew = known === undefined
    if (known !== undefined) {
      known.step.read(nowUs)
      return known
    }
    const own = { numbers: name, step: leaseStepOf(encoding, numbers, this.rules) }
    own.step.read(nowUs)
    const from = this.rules.beginsWithLargest ? largestOf(this.records) : this.records[0]
    if (from !== undefined)
      own.step.carried(
        from.step,
        this.records.map(({ step }) => step),
      )
    this.records = [own, ...this.records]
    return own
  }
}

function largestOf(records: readonly LeaseRecord[]): LeaseRecord | undefined {
  return records.reduce<LeaseRecord | undefined>(
    (largest, record) => (largest && largest.step.whole >= record.step.whole ? largest : record),
    undefined,
  )
}

export function wholeNumbersOf(encoding: PolicyEncoding): number[] {
  return encoding.numbersAt(0).split(' ').map(Number)
}

/** Durations from the answer on, in microseconds. */
interface GrantParts extends Partial<Omit<Grant, 'endUs'>> {
  /** How long the tokens are good. */
  readonly endUs?: number
}

/** A grant of these tokens, of a rate by default; nothing else is known of the key. */
export function grantOf({ tokens = 0, endUs = 100_000, ...more }: GrantParts): Grant {
  return {
    tokens,
    endUs: () => endUs,
    flowsBack: true,
    untilFreeUs: 0,
    untilFreeFor: () => undefined,
    blockedUs: 0,
    remaining: 0,
    untilNewUs: 0,
    ...more,
  }
}

export const MS = 1000
export const HORIZON_US = 50 * MS

/** The lease of an unused key at time 0. */
export function freshLease(): KeyLease {
  return new KeyLease(0, HORIZON_US, 1000)
}

/** Asks for a lease and is given all of it at once. */
export function givenAll(lease: KeyLease, nowUs: number): TokenRequest {
  const asked = lease.want(nowUs)
  lease.addGrant(grantOf({ tokens: asked.want }), asked, nowUs)
  return asked
}

/** A window's answer: nothing is known of other numbers of tokens, and what is left is all that there is. */
export const OF_A_WINDOW = { flowsBack: false, id: 1 } as const
