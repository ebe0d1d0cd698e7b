import type { Grant } from '../../../sluicegate/dist/lease/grant.js'
import type { Policy } from '../../../sluicegate/dist/policy/policy.js'
import { emissionOf } from '../../../sluicegate/dist/policy/policy-numbers.js'
import { storedNames } from '../../../sluicegate/dist/policy/stored-name.js'
import type { Answer, Backend, LeaseRequest, Operation } from '../../../sluicegate/dist/shared/backend.js'
import type { PolicyStore } from '../../../sluicegate/dist/shared/open-store.js'
import { encodingsOf, type PolicyEncoding } from '../../../sluicegate/dist/shared/steps/policy-encoding.js'
import { grantsOf, type StepLease } from '../../../sluicegate/dist/shared/steps/step-answers.js'
import { StoreLanes } from '../../../sluicegate/dist/store/store-lanes.js'
import { SwapBackend } from '../../../sluicegate/dist/store/swap-backend.js'
import { TimedStore } from '../../../sluicegate/dist/store/timed-store.js'
import { memoryStore } from '../../../sluicegate/dist/store-testing/index.js'
import type { Admission } from '../history/excess.js'
import { LeaseRecords } from '../leases/lease-records.js'
import type { VirtualTime } from '../virtual-time.js'

/**
 * Carries one message to the home and its answer back; `run` is what the home does, once for each time that the message arrives. What gives
 * back may not arrive twice: the library sends each call once.
 */
export type Link = <T>(run: () => T | Promise<T>, mayRepeat: boolean) => Promise<T>

/** The true budgets, by the twins of the scripts, at the true time. */
export class SimHome {
  /** Takes that passed here, each when it was decided. */
  readonly admissions: Admission[] = []
  /** Messages that arrived. */
  calls = 0
  private readonly time: VirtualTime
  private readonly records = new Map<string, LeaseRecords>()
  private readonly leaseUsOf: (leaseUs: number) => number

  /** @param leaseUsOf how long the home believes that leases last; another time in a mutant. */
  constructor(time: VirtualTime, leaseUsOf: (leaseUs: number) => number = (leaseUs) => leaseUs) {
    this.time = time
    this.leaseUsOf = leaseUsOf
  }

  /** As one region sees it. */
  behind(link: Link, countRegions: () => number): PolicyStore {
    return {
      places: { serverOf: () => undefined, slotOf: () => undefined },
      connect: (policy, lengthOf) => this.backendOf(policy, lengthOf(policy), link),
      countNodes: async () => countRegions(),
    }
  }

  /** It has lost its data. */
  forget(): void {
    this.records.clear()
  }

  private backendOf(policy: Policy, leaseUs: number, link: Link): Backend {
    const encoding = encodingsOf(policy, () => this.leaseUsOf(leaseUs)).encodings[0] as PolicyEncoding
    const grantOf = grantsOf(encoding, leaseUs)
    return {
      execute: (operation) => link(() => this.execute(encoding, operation), operation.verb !== 'giveBack'),
      lease: ({ key, want, least }: LeaseRequest): Promise<Grant> =>
        link(() => {
          this.calls++
          return grantOf(this.recordsOf(encoding, key).lease(encoding, this.time.nowUs, want, least), least)
        }, true),
    }
  }

  private execute(encoding: PolicyEncoding, operation: Operation): Answer {
    this.calls++
    const records = this.recordsOf(encoding, operation.key as string)
    const { nowUs } = this.time
    if (operation.verb === 'penalize') {
      for (let tokens = operation.tokens; tokens > 0 && records.take(encoding, nowUs, 1).allowed; tokens--);
      return this.answer(encoding, records, true, 1)
    }
    if (operation.verb === 'peek') {
      return this.answer(encoding, records, records.untilFreeUs(encoding, nowUs, operation.cost) === 0, operation.cost)
    }
    if (operation.verb === 'giveBack') {
      const { charge, tokens } = operation
      const chargedUs = 'grantId' in charge ? charge.grantId : (charge.receipt as number)
      records.giveBack(encoding, nowUs, Math.min(charge.cost, tokens), chargedUs)
      return this.answer(encoding, records, true, 1)
    }
    if (operation.verb === 'reserve') {
      const { allowed } = records.take(encoding, nowUs, operation.cost)
      return { ...this.answer(encoding, records, allowed, operation.cost), receipt: nowUs }
    }
    if (operation.verb !== 'take') throw new TypeError(`the simulated home does not know ${operation.verb}`)
    const { allowed } = records.take(encoding, nowUs, operation.cost)
    if (allowed && encoding.leaseUs > 0) this.admissions.push({ atUs: nowUs, cost: operation.cost })
    return this.answer(encoding, records, allowed, operation.cost)
  }

  private answer(encoding: PolicyEncoding, records: LeaseRecords, done: boolean, cost: number): Answer {
    const state = records.lease(encoding, this.time.nowUs, 0, cost)
    const { limit, name } = encoding.policy
    const decision = {
      allowed: done,
      limit,
      remaining: remainingIn(encoding, state),
      retryAfterMs: done ? 0 : Math.max(1, Math.ceil(records.untilFreeUs(encoding, this.time.nowUs, cost) / 1000)),
      resetAfterMs: Math.ceil(state.untilNewUs / 1000),
      policy: name,
      // Tells apart what the home decided.
      source: 'memory' as const,
    }
    return { done, decision }
  }

  private recordsOf(encoding: PolicyEncoding, key: string): LeaseRecords {
    const name = `${encoding.policy.name} ${key}`
    let records = this.records.get(name)
    if (records === undefined) {
      records = new LeaseRecords(encoding.name)
      this.records.set(name, records)
    }
    return records
  }
}

function remainingIn({ name, policy }: PolicyEncoding, { debt }: StepLease): number {
  if (name !== 'rate') return Math.max(0, policy.limit - debt)
  const { unitsPerToken, capacity } = emissionOf(policy)
  return Math.max(0, Math.floor((capacity - debt) / unitsPerToken))
}

/** The true budgets in a store: all verbs, as `casStore()` has them. Its grants are known by ids of their own, so that any process returns them. */
export class StoreSimHome {
  /** Takes that passed here, each when it was decided. */
  readonly admissions: Admission[] = []
  /** Messages that arrived. */
  calls = 0
  private readonly time: VirtualTime
  private readonly backends = new Map<string, Backend>()
  private readonly lanes: StoreLanes

  constructor(time: VirtualTime) {
    this.time = time
    const clock = time.clock(0, 0)
    this.lanes = new StoreLanes(new TimedStore(memoryStore({ clock }), clock, 1000))
  }

  /** As one region sees it. */
  behind(link: Link, countRegions: () => number): PolicyStore {
    return {
      places: { serverOf: () => undefined, slotOf: () => undefined },
      connect: (policy, lengthOf, names) => this.behindLink(this.backendOf(policy, lengthOf, names), link, policy.name.endsWith('@demand')),
      countNodes: async () => countRegions(),
    }
  }

  /** At the home itself. */
  backendOf(policy: Policy, lengthOf: (policy: Policy) => number, names = storedNames(policy)): Backend {
    const name = `${names} ${policy.algorithm} ${policy.limit} ${policy.burst} ${policy.windowMs} ${lengthOf(policy)}`
    const known = this.backends.get(name)
    if (known !== undefined) return known
    const made = new SwapBackend(this.lanes, policy, lengthOf, 'home', 'shared', names)
    this.backends.set(name, made)
    return made
  }

  private behindLink(backend: Backend, link: Link, isDemand: boolean): Backend {
    return {
      execute: (operation) => link(() => this.execute(backend, operation, isDemand), false),
      lease: (request) =>
        link(() => {
          this.calls++
          return backend.lease(request)
        }, false),
    }
  }

  private async execute(backend: Backend, operation: Operation, isDemand: boolean): Promise<Answer> {
    this.calls++
    const { nowUs } = this.time
    const answer = await backend.execute(operation)
    if (!isDemand && operation.verb === 'take' && answer.done) this.admissions.push({ atUs: nowUs, cost: operation.cost })
    // Tells apart what the home decided.
    return answer.decision === undefined || operation.verb !== 'take'
      ? answer
      : { ...answer, decision: { ...answer.decision, source: 'memory' } }
  }
}
