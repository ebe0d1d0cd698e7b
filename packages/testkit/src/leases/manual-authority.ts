import { combined, type Decision } from '../../../sluicegate/dist/decision/decision.js'
import { StoreError } from '../../../sluicegate/dist/errors.js'
import { keysFor } from '../../../sluicegate/dist/key.js'
import type { Grant } from '../../../sluicegate/dist/lease/grant.js'
import { leaseUsOf } from '../../../sluicegate/dist/lease/leasing.js'
import type { Key } from '../../../sluicegate/dist/limiter.js'
import type { Policy } from '../../../sluicegate/dist/policy/policy.js'
import type { Answer, Backend, LeaseRequest, Operation } from '../../../sluicegate/dist/shared/backend.js'
import { encodingsOf, type PolicyEncoding } from '../../../sluicegate/dist/shared/steps/policy-encoding.js'
import { type GrantOf, grantsOf } from '../../../sluicegate/dist/shared/steps/step-answers.js'
import { LeaseTable } from '../../../sluicegate/dist/shared/takes/lease-table.js'
import { LeasedAllOf } from '../../../sluicegate/dist/shared/takes/leased-all-of.js'
import { type LeasedTakes, SingleLeasedTakes } from '../../../sluicegate/dist/shared/takes/leased-takes.js'
import type { WaitingTakesParts } from '../../../sluicegate/dist/shared/takes/waiting-takes.js'
import { type ManualClock, manualClock } from '../../../sluicegate/dist/time/clock.js'
import { Random } from '../random.js'
import { type LeaseStep, SOUND_RECORDS } from '../twins/lease-step.js'
import { leaseStepOf } from './leased-fleet.js'

const BLOCK_US = 3_600_000_000

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
  /** Whether several policies' keys are on different servers. */
  readonly isApart?: boolean
  /** Of what is random. */
  readonly seed?: number
}

/**
 * Takes of a leased policy, or of several, over an authority that answers when a test says so, or at once, on one manual clock: the same step
 * for each key as in the histories of leases.
 */
export class ManualAuthority {
  readonly clock: ManualClock = manualClock(1_000_000)
  /** Those of each process, and of the first. */
  readonly fleet: readonly LeasedTakes[]
  readonly takes: LeasedTakes
  /** Questions that were not answered yet. */
  readonly asked: Message[] = []
  /** Whether a question waits for the test. */
  isHeld = false
  isOut = false
  /** Another process has banned all keys. */
  isBlocked = false
  leases = 0
  atOnce = 0
  withoutStore = 0
  /** Tokens leased or taken at once, returned tokens, and the number of returning calls. */
  lent = 0
  broughtBack = 0
  returns = 0
  lateAnswers = 0
  readonly horizonUs: number
  readonly leaseUs: number
  private readonly options: ManualAuthorityOptions
  private readonly encodings: readonly PolicyEncoding[]
  private readonly grantsOf: readonly GrantOf[]
  private readonly steps = new Map<string, LeaseStep>()
  /** When the authority decided what it decided by itself. */
  private readonly decidedUs = new WeakMap<Decision, number>()
  private readonly delayMs: number
  private readonly random: () => number

  constructor(options: ManualAuthorityOptions) {
    const { policy, horizonMs = 50, processes = 1, delayMs = 0, seed = 1 } = options
    this.options = options
    this.horizonUs = horizonMs * 1000
    this.leaseUs = leaseUsOf(horizonMs)
    this.delayMs = delayMs
    const random = new Random(seed)
    this.random = () => random.fraction()
    this.encodings = encodingsOf(policy, () => this.leaseUs).encodings
    this.grantsOf = this.encodings.map((encoding) => grantsOf(encoding, this.leaseUs))
    this.fleet = Array.from({ length: processes }, () => this.process())
    this.takes = this.fleet[0] as LeasedTakes
  }

  get nowUs(): number {
    return Math.round(this.clock.nowMs() * 1000)
  }

  /** Another process takes, from the policy of that number. */
  takeElsewhere(key: string, cost: number, part = 0): boolean {
    return this.stepOf(part, key).take(this.nowUs, cost).allowed
  }

  /** The time by which a take counts that was just decided: that of the authority, if it decided it by itself. */
  timeOf(decision: Decision): number {
    return this.decidedUs.get(decision.parts?.[0] ?? decision) ?? this.nowUs
  }

  /** Takes, and waits for the answer. */
  async take(key: Key, cost = 1): Promise<Decision> {
    return this.takes.take(key, cost)
  }

  private process(): LeasedTakes {
    const { policy, horizonMs = 50, maxKeys = 1000 } = this.options
    const { clock } = this
    const tables = this.encodings.map((encoding, part) => {
      return new LeaseTable({ policy: encoding.policy, backend: this.backend, part, clock, horizonMs, maxKeys, random: this.random })
    })
    if (policy.policies !== undefined) return new LeasedAllOf(tables, this.waiting())
    return new SingleLeasedTakes(tables[0] as LeaseTable, this.waiting())
  }

  private readonly backend: Backend = {
    execute: (operation) => this.execute(operation),
    lease: (request) => this.lease(request),
  }

  private lease({ key, part, want, least }: LeaseRequest): Promise<Grant> {
    this.leases++
    return this.sent(key, want, least, () => {
      const step = this.stepOf(part, key)
      if (this.isBlocked) return (this.grantsOf[part] as GrantOf)({ ...step.lease(this.nowUs, 0, 1), blockedUs: BLOCK_US }, least)
      const lease = step.lease(this.nowUs, want, least)
      this.lent += lease.tokens
      return (this.grantsOf[part] as GrantOf)(lease, least)
    })
  }

  private async execute(operation: Operation): Promise<Answer> {
    const { verb, key } = operation
    if (verb === 'giveBack' && 'grantId' in operation.charge) {
      await this.takenBack(operation.charge.part, key as string, operation.tokens, operation.charge.grantId)
      return { done: true }
    }
    if (verb === 'take') {
      const { cost } = operation
      this.atOnce++
      return this.sent(String(key), cost, cost, () => this.answered(key, cost, this.takenAtOnce(key, cost)))
    }
    if (verb !== 'peek') throw new TypeError(`no ${verb} here`)
    const { cost } = operation
    return this.sent(String(key), cost, cost, () => this.answered(key, cost, !this.isBlocked && this.untilFreeUs(key, cost) === 0))
  }

  /** As the store says it: a take that passed says what is left after it. */
  private answered(key: Key, cost: number, done: boolean): Answer {
    const parts = keysFor(this.encodings.length, key).map((own, part): Decision => {
      const { policy } = this.encodings[part] as PolicyEncoding
      const step = this.stepOf(part, own)
      const freeUs = this.isBlocked ? BLOCK_US : step.untilFreeUs(this.nowUs, cost)
      const allowed = done || freeUs === 0
      return {
        allowed,
        limit: policy.limit,
        remaining: step.remainingAt(this.nowUs),
        retryAfterMs: allowed ? 0 : Math.max(1, Math.ceil(freeUs / 1000)),
        resetAfterMs: Math.ceil(step.untilFullUs(this.nowUs) / 1000),
        policy: policy.name,
        source: 'store',
      }
    })
    this.decidedUs.set(parts[0] as Decision, this.nowUs)
    return { done, decision: this.options.policy.policies === undefined ? (parts[0] as Decision) : combined(parts) }
  }

  private takenBack(part: number, key: string, tokens: number, leasedUs: number): Promise<void> {
    this.returns++
    return this.sent(key, tokens, tokens, () => {
      this.broughtBack += tokens
      this.stepOf(part, key).giveBack(this.nowUs, tokens, leasedUs)
    })
  }

  private waiting(): WaitingTakesParts {
    const takeWithout = (): Decision => {
      this.withoutStore++
      return this.answer(false, 'outage')
    }
    const guard = { isTogether: () => !this.options.isApart, pausedMs: () => (this.isOut ? 1 : 0), timeoutMs: 10_000 }
    const fallback = { execute: this.backend.execute, takeWithout }
    return { inForce: { fallback }, guard, clock: this.clock }
  }

  private answer(allowed: boolean, source: Decision['source']): Decision {
    const { limit, name, policies } = this.options.policy
    const retryAfterMs = allowed ? 0 : 1
    const decision: Decision = { allowed, limit, remaining: 0, retryAfterMs, resetAfterMs: 1_000_000, policy: name, source }
    return policies === undefined ? decision : { ...decision, parts: policies.map(() => decision) }
  }

  private takenAtOnce(key: Key, cost: number): boolean {
    if (this.isBlocked || this.untilFreeUs(key, cost) > 0) return false
    this.lent += cost * this.encodings.length
    return keysFor(this.encodings.length, key).every((own, part) => this.stepOf(part, own).take(this.nowUs, cost).allowed)
  }

  private untilFreeUs(key: Key, cost: number): number {
    return Math.max(...keysFor(this.encodings.length, key).map((own, part) => this.stepOf(part, own).untilFreeUs(this.nowUs, cost)))
  }

  private stepOf(part: number, key: string): LeaseStep {
    const name = `${part} ${key}`
    let step = this.steps.get(name)
    if (step === undefined) {
      const encoding = this.encodings[part] as PolicyEncoding
      step = leaseStepOf(encoding, encoding.numbersAt(0).split(' ').map(Number), SOUND_RECORDS)
      this.steps.set(name, step)
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

const [TOGETHER, MOST] = [5, 120]

/**
 * Takes until the process holds tokens of a key beyond those that callers wait for: a key whose demand is not known yet is not leased ahead.
 *
 * @returns how many passed; the last of them by a token that was held.
 */
export async function holdingTokens(
  limiter: { take(key: Key, cost?: number): Decision | Promise<Decision> },
  key: Key,
  most = MOST,
): Promise<number> {
  for (let passed = 0; passed < most; passed++) {
    const together = await Promise.all(Array.from({ length: TOGETHER }, () => limiter.take(key)))
    passed += together.filter(({ allowed }) => allowed).length
    const next = limiter.take(key)
    const { allowed, source } = await next
    if (!allowed) throw new Error(`denied after ${passed} takes`)
    if (!(next instanceof Promise) && source === 'lease') return passed + 1
  }
  throw new Error(`nothing is held after ${most} takes`)
}
