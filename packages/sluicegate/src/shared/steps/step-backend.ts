import { holdsPermits } from '../../decision/permit.js'
import { keysFor } from '../../key.js'
import type { Grant, Granted } from '../../lease/grant.js'
import type { Key } from '../../limiter.js'
import {
  type Answer,
  type Backend,
  type CallerSignal,
  type GiveBackOperation,
  type HoldOperation,
  isGranted,
  type LeaseRequest,
  newOperationId,
  type Operation,
  type Reserved,
  type ReserveOperation,
} from '../backend.js'
import type { PolicyEncoding, PolicyEncodings } from './policy-encoding.js'
import {
  decisionFrom,
  type GrantOf,
  grantsOf,
  heldDecision,
  type KeyState,
  type StepAnswer,
  type StepHeld,
  type StepLease,
  type StepRequest,
  type StepVerb,
  waitUsIn,
} from './step-answers.js'

/** The longest wait in a request: unlimited. */
const ANY_US = Number.MAX_SAFE_INTEGER

/** A store that computes: scripts of Redis, statements of a database. Each call is one atomic step on the store's clock. */
export interface ComputingStore {
  /** Changes the state of all keys or of none. */
  ask(verb: StepVerb, requests: readonly StepRequest[], signal?: CallerSignal): Promise<StepAnswer>
  /** One step of a hold, on all keys or on none. */
  hold(encodings: readonly PolicyEncoding[], keys: readonly string[], operation: HoldOperation, signal?: CallerSignal): Promise<StepHeld>
  lease(encoding: PolicyEncoding, key: string, want: number, least: number, signal?: CallerSignal): Promise<StepLease>
}

/** What `giveBack` needs of a reservation: its answer, and the encodings in which it was made. */
class StepReceipt {
  readonly answer: StepAnswer
  readonly policies: PolicyEncodings

  constructor(answer: StepAnswer, policies: PolicyEncodings) {
    this.answer = answer
    this.policies = policies
  }
}

/**
 * The state of one policy in a store that computes. One operation goes this way:
 *
 * 1. `execute` makes a request for the key of each policy: encoding, key, amount.
 * 2. The store changes the state of all keys or of none, at its own time, and answers with numbers. Redis runs one script (`lua/`), which
 *    `RedisScripts` sends; PostgreSQL one statement, which `StoreSteps` gathers.
 * 3. `step-answers.ts` turns the state of each key into a decision.
 *
 * `lease` goes the same way with one policy, and `grantsOf` of `step-answers.ts`.
 */
export class StepBackend implements Backend {
  private readonly store: ComputingStore
  private readonly policies: PolicyEncodings
  private readonly permitOf: (id: number) => string
  /** Of each policy that is leased. */
  private readonly grants: readonly GrantOf[]
  private readonly holdsPermits: boolean

  /**
   * @param permitOf the name of the permit that operation `id` takes, unique in the fleet.
   */
  constructor(store: ComputingStore, policies: PolicyEncodings, permitOf: (id: number) => string) {
    this.store = store
    this.policies = policies
    this.permitOf = permitOf
    this.grants = policies.encodings.map((encoding) => grantsOf(encoding, encoding.leaseUs))
    this.holdsPermits = policies.encodings.some(({ policy }) => holdsPermits(policy))
  }

  execute(operation: Operation, signal?: CallerSignal): Promise<Answer> {
    switch (operation.verb) {
      case 'take':
        if (operation.canSettle) return this.reserve({ ...operation, maxWaitUs: 0 }, signal)
        return this.ask('take', operation.key, operation.cost, signal, operation.id)
      case 'peek':
        return this.ask('peek', operation.key, operation.cost, signal)
      case 'refund':
      case 'penalize':
        return this.ask(operation.verb, operation.key, operation.tokens, signal)
      case 'charge':
        return this.charge(operation.key, operation.tokens, signal)
      case 'block':
        return this.ask('block', operation.key, operation.us, signal)
      case 'reset':
        return this.ask('reset', operation.key, 1, signal)
      case 'reserve':
        return this.reserve(operation, signal)
      case 'redeem':
        return this.redeem(operation.key, operation.charge.id, signal)
      case 'giveBack':
        return this.giveBack(operation, signal)
      case 'release':
      case 'heartbeat':
        return this.permit(operation.verb, operation, signal)
      case 'hold':
        return this.hold(operation, signal)
    }
  }

  lease({ key, part, want, least }: LeaseRequest, signal?: CallerSignal): Promise<Grant> {
    const encoding = this.policies.encodings[part] as PolicyEncoding
    const grantOf = this.grants[part] as GrantOf
    return this.store.lease(encoding, key, want, least, signal).then((lease) => grantOf(lease, least))
  }

  private ask(verb: StepVerb, key: Key, tokens: number, signal: CallerSignal | undefined, id?: number): Promise<Answer> {
    return this.store
      .ask(verb, this.requests(key, tokens, id), signal)
      .then(({ states }) => ({ done: allDone(states), decision: decisionFrom(verb, this.policies, states, tokens) }))
  }

  private async hold(operation: HoldOperation, signal: CallerSignal | undefined): Promise<Answer> {
    const { encodings } = this.policies
    const { hold, spent, least, record } = operation
    const held = await this.store.hold(encodings, keysFor(encodings.length, operation.key), operation, signal)
    const { done, rest, granted, endUs, nowUs, over } = held
    const decision = heldDecision(this.policies, held, Math.max(hold === 'rest' ? 0 : hold, spent, least, 1))
    const forUs = Math.max(0, endUs - nowUs)
    if (!done && record === undefined) return { done, decision }
    const { used, spent: charged, debt, fault, count } = held
    return {
      done,
      decision,
      hold: {
        rest,
        granted,
        forUs,
        over,
        ...(record && { used, spent: charged, debt, fault }),
        ...(operation.count !== undefined && { count }),
        state: endUs,
      },
    }
  }

  private async charge(key: Key, tokens: readonly number[], signal: CallerSignal | undefined): Promise<Answer> {
    const requests = this.requests(key, 0).map((request, i) => ({ ...request, tokens: tokens[i] ?? 0 }))
    const { states } = await this.store.ask('penalize', requests, signal)
    return { done: allDone(states), decision: decisionFrom('penalize', this.policies, states, 1) }
  }

  private async reserve(
    { key, cost, id, maxWaitUs }: Pick<ReserveOperation, 'key' | 'cost' | 'id' | 'maxWaitUs'>,
    signal: CallerSignal | undefined,
  ): Promise<Answer> {
    const { policies } = this
    // Reservations of several policies would come due at different times.
    const mostUs = policies.isAllOf ? 0 : Math.min(maxWaitUs, ANY_US)
    const answer = await this.store.ask('reserve', this.requests(key, cost, id, mostUs), signal)
    const { states, nowUs = 0 } = answer
    const done = allDone(states)
    return {
      done,
      decision: decisionFrom('reserve', policies, states, cost),
      waitUs: done && states.length === 1 ? waitUsIn(policies.encodings[0] as PolicyEncoding, states[0] as KeyState) : 0,
      order: nowUs,
      receipt: new StepReceipt(answer, policies),
    }
  }

  private async redeem(key: Key, id: number, signal: CallerSignal | undefined): Promise<Answer> {
    const { states } = await this.store.ask('peek', this.requests(key, 1, id), signal)
    const isBanned = states.some(({ blockedUs }) => blockedUs > 0)
    return { done: !isBanned, decision: decisionFrom('peek', this.policies, states, 1) }
  }

  private giveBack({ key, charge, tokens }: GiveBackOperation, signal: CallerSignal | undefined): Promise<Answer> {
    return isGranted(charge) ? this.giveBackGranted(key as string, charge, tokens, signal) : this.giveBackBooked(charge, tokens, signal)
  }

  /** In the encodings in which it was made: how much is safe to give back in those of an update is unknown. */
  private async giveBackBooked(
    { key, cost, waitUs, id, receipt }: Reserved,
    tokens: number,
    signal: CallerSignal | undefined,
  ): Promise<Answer> {
    if (!(receipt instanceof StepReceipt)) return this.ask('peek', key, 1, signal)
    const { answer, policies } = receipt
    const { nowUs = 0 } = answer
    const requests = this.requests(key, tokens, id).map((request, i) => ({
      ...request,
      encoding: policies.encodings[i] as PolicyEncoding,
      booking: { cost, bookedUs: nowUs, atUs: nowUs + waitUs, debt: answer.states[i]?.debt ?? 0 },
    }))
    const { states } = await this.store.ask('giveBack', requests, signal)
    return { done: allDone(states), decision: decisionFrom('giveBack', policies, states, 1) }
  }

  /** Of `allOf` only the policies that hold permits. */
  private async permit(
    verb: 'release' | 'heartbeat',
    { key, cost, id }: Extract<Operation, { verb: 'release' | 'heartbeat' }>,
    signal: CallerSignal | undefined,
  ): Promise<Answer> {
    const requests = this.requests(key, cost, id).filter(({ encoding }) => holdsPermits(encoding.policy))
    const { states } = await this.store.ask(verb, requests, signal)
    return { done: allDone(states) }
  }

  /** As a reservation for the time of the lease. It has an effect only in the window of that time, or while no later request is logged. */
  private async giveBackGranted(
    key: string,
    { grantId, part, cost }: Granted,
    tokens: number,
    signal: CallerSignal | undefined,
  ): Promise<Answer> {
    const booking = { cost, bookedUs: grantId, atUs: grantId, debt: 0 }
    const { states } = await this.store.ask(
      'giveBack',
      [{ encoding: this.policies.encodings[part] as PolicyEncoding, key, tokens, booking }],
      signal,
    )
    return { done: allDone(states) }
  }

  /** `penalize` takes places of a concurrency limit under a permit of its own, which no caller holds. */
  private requests(key: Key, tokens: number, id?: number, mostUs?: number): StepRequest[] {
    const { encodings, isAllOf } = this.policies
    const permit = this.holdsPermits ? this.permitOf(id ?? newOperationId()) : undefined
    if (!isAllOf) return [{ encoding: encodings[0] as PolicyEncoding, key: key as string, tokens, permit, mostUs }]
    return keysFor(encodings.length, key).map((own, i) => ({ encoding: encodings[i] as PolicyEncoding, key: own, tokens, permit, mostUs }))
  }
}

function allDone(states: readonly KeyState[]): boolean {
  return states.every(({ done }) => done)
}
