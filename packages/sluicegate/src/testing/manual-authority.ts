import { Random } from 'sluicegate-testkit'
import { type ManualClock, manualClock } from '../clock.js'
import type { Decision } from '../decision.js'
import { StoreError } from '../errors.js'
import type { Authority, Grant } from '../lease/authority.js'
import { leaseUsOf } from '../lease/leasing.js'
import type { Policy } from '../policy.js'
import { LeasedTakes } from '../redis/leased-takes.js'
import { type GrantOf, grantsOf } from '../redis/store-authority.js'
import { type StoreForm, storePoliciesOf } from '../redis/store-form.js'
import type { LeaseStep } from './lease-step.js'
import { leaseStepOf } from './lease-step-of.js'

/** A call on its way: to an authority or back from it. */
interface Message {
  readonly key: string
  readonly want: number
  readonly least: number
  /** Lets it be carried out, and brings the answer back. */
  answer(): void
  lose(): void
}

export interface ManualAuthorityOptions {
  readonly policy: Policy
  readonly horizonMs?: number
  readonly maxKeys?: number
  /** How many processes there are, default 1. */
  readonly processes?: number
  /** How long a message takes, one way; default none. */
  readonly delayMs?: number
  /** Of what is random. */
  readonly seed?: number
}

/**
 * Takes of a leased policy over an authority that answers when a test says so, or at once, on one manual clock: the same step for each key
 * as in the histories of leases.
 */
export class ManualAuthority implements Authority {
  readonly clock: ManualClock = manualClock(1_000_000)
  /** Those of each process, and of the first. */
  readonly fleet: readonly LeasedTakes[]
  readonly takes: LeasedTakes
  /** Questions that were not answered yet. */
  readonly asked: Message[] = []
  /** Whether a question waits for the test. */
  isHeld = false
  isOut = false
  leases = 0
  atOnce = 0
  withoutStore = 0
  readonly horizonUs: number
  readonly leaseUs: number
  private readonly form: StoreForm
  private readonly grantOf: GrantOf
  private readonly steps = new Map<string, LeaseStep>()
  private readonly delayMs: number

  constructor({ policy, horizonMs = 50, maxKeys = 1000, processes = 1, delayMs = 0, seed = 1 }: ManualAuthorityOptions) {
    this.horizonUs = horizonMs * 1000
    this.leaseUs = leaseUsOf(horizonMs)
    this.delayMs = delayMs
    const random = new Random(seed)
    this.form = storePoliciesOf(policy, () => this.leaseUs).forms[0] as StoreForm
    this.grantOf = grantsOf(this.form, this.leaseUs, () => random.fraction())
    const answer = (allowed: boolean, source: Decision['source']): Decision => {
      return {
        allowed,
        limit: policy.limit,
        remaining: 0,
        retryAfterMs: allowed ? 0 : 1,
        resetAfterMs: 1_000_000,
        policy: policy.name,
        source,
      }
    }
    const beyond = {
      take: (key: string, cost: number): Promise<Decision> => {
        this.atOnce++
        return this.sent(key, cost, cost, () => answer(this.stepOf(key).take(this.nowUs, cost).allowed, 'store'))
      },
      isOut: () => this.isOut,
      without: () => {
        this.withoutStore++
        return answer(false, 'outage')
      },
    }
    const takes = (): LeasedTakes => new LeasedTakes({ policy, authority: this, beyond, clock: this.clock, horizonMs, maxKeys })
    this.fleet = Array.from({ length: processes }, takes)
    this.takes = this.fleet[0] as LeasedTakes
  }

  get nowUs(): number {
    return Math.round(this.clock.nowMs() * 1000)
  }

  lease(key: string, want: number, horizonUs: number, least: number): Promise<Grant> {
    this.leases++
    return this.sent(key, want, least, () => {
      const lease = this.stepOf(key).lease(this.nowUs, want, least, horizonUs)
      return this.grantOf(lease, horizonUs, least)
    })
  }

  /** Somebody else takes. */
  takeElsewhere(key: string, cost: number): boolean {
    return this.stepOf(key).take(this.nowUs, cost).allowed
  }

  /** Takes, and waits for the answer. */
  async take(key: string, cost = 1): Promise<Decision> {
    return this.takes.take(key, cost)
  }

  private stepOf(key: string): LeaseStep {
    let step = this.steps.get(key)
    if (step === undefined) {
      step = leaseStepOf(this.form, this.form.numbersAt(0).map(Number))
      this.steps.set(key, step)
    }
    return step
  }

  private sent<Answer>(key: string, want: number, least: number, carriedOut: () => Answer): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const message = {
        key,
        want,
        least,
        answer: () =>
          this.later(() => {
            const answer = carriedOut()
            this.later(() => resolve(answer))
          }),
        lose: () => reject(new StoreError('OUTAGE', 'the test lost it')),
      }
      if (this.isOut) message.lose()
      else if (this.isHeld) this.asked.push(message)
      else message.answer()
    })
  }

  private later(what: () => void): void {
    if (this.delayMs === 0) what()
    else this.clock.after(this.delayMs, what)
  }
}
