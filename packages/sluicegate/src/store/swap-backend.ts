import type { Decision } from '../decision/decision.js'
import { PolicyError } from '../errors.js'
import { keysUnder } from '../key.js'
import type { Grant, Granted } from '../lease/grant.js'
import type { Key } from '../limiter.js'
import { Holdings } from '../owner/holdings.js'
import type { MemoryLease } from '../owner/memory-lease.js'
import { grantIn, numbersOfLease } from '../owner/message.js'
import { isRate, type Policy, policiesOf } from '../policy/policy.js'
import { storedNames } from '../policy/stored-name.js'
import {
  type Answer,
  type Backend,
  type CallerSignal,
  type Charge,
  isGranted,
  type LeaseRequest,
  newOperationId,
  type Operation,
  type Reserved,
} from '../shared/backend.js'
import { KeptById } from '../shared/kept-by-id.js'
import type { Work } from './key-lane.js'
import { KeySession, type SessionResult, SwappedCharge } from './key-session.js'
import { storeKeys } from './store-key.js'
import type { StoreLanes } from './store-lanes.js'

/** Permits that one limiter remembers. Others can no longer be ended or renewed: they end by their ttl. */
const MOST_PERMITS = 100_000

/**
 * The state of one policy in any store that can compare and swap. One operation goes this way:
 *
 * 1. It waits in the lane of its keys (`KeyLane`), with all others of this process for the same keys.
 * 2. The lane loads the state seen last, or reads it, into the memory of a limiter for one key ({@link KeySession}).
 * 3. The compiled core makes all waiting changes there, at the store's time.
 * 4. The state that it leaves is swapped in. Where another process was first, the lane goes on from the state that the store returned.
 */
export class SwapBackend implements Backend {
  private readonly policy: Policy
  private readonly policies: readonly Policy[]
  /** Where the store keeps a key under each policy. */
  private readonly placesOf: readonly ((key: string) => string)[]
  private readonly lanes: StoreLanes
  /** The first for all policies together; those of single policies, for leases, come with the first lease. */
  private readonly sessions: KeySession[]
  private readonly lengthOf: (policy: Policy) => number
  /** Which permits of a key's value this process holds, by the ids of the operations that took them. */
  private readonly permits: KeptById<SwappedCharge>
  private readonly granted: Holdings
  /** Whether grants are known by the time at which they were charged, so that any process may give back what another leased. */
  private readonly areShared: boolean
  /** The one in force since an update. */
  private next: SwapBackend | undefined

  /**
   * @param before which this one replaces: what its holders give back goes on here, as it would make a key one of the old numbers. `'shared'`:
   * any process may give back what another leased.
   * @param names of the policy's accounts.
   */
  constructor(
    lanes: StoreLanes,
    policy: Policy,
    lengthOf: (policy: Policy) => number,
    prefix: string,
    given?: SwapBackend | 'shared',
    names: readonly string[] = storedNames(policy),
  ) {
    const before = given === 'shared' ? undefined : given
    this.areShared = given === 'shared'
    this.lanes = lanes
    this.policy = policy
    this.policies = policiesOf(policy)
    this.lengthOf = lengthOf
    this.placesOf = this.policies.map((each, i) => storeKeys(prefix, each, names[i] as string))
    this.sessions = [new KeySession(policy, lengthOf)]
    this.permits = before?.permits ?? new KeptById(MOST_PERMITS)
    this.granted = before?.granted ?? new Holdings(() => policy)
    if (before !== undefined) before.next = this
  }

  /** Whether a swap has made this charge. */
  hasCharged(charge: Charge): boolean {
    return isGranted(charge) ? this.granted.isLease(charge.grantId) : charge.receipt instanceof SwappedCharge
  }

  execute(operation: Operation, signal?: CallerSignal): Promise<Answer> {
    if (this.next !== undefined) return this.next.execute(operation, signal)
    if (operation.verb === 'giveBack' && isGranted(operation.charge)) {
      return this.giveBackGranted(operation.key as string, operation.charge, operation.tokens)
    }
    const charge = this.chargeOf(operation)
    return this.inLane(this.keysOf(operation.key), this.sessionOf(undefined), {
      signal,
      isReset: operation.verb === 'reset',
      run: (session, undo) => (undo === undefined ? session.run(operation, charge) : session.runAgain(operation, charge, undo)),
      answer: (result, nowUs, atUs, order) => this.answered(operation, result, nowUs, atUs, order),
    })
  }

  /** What a step has reserved, for a time that has come. */
  giveBackReserved(charge: Reserved, tokens: number): Promise<Answer> {
    if (this.next !== undefined) return this.next.giveBackReserved(charge, tokens)
    const { key, cost, order, waitUs } = charge
    return this.inLane(this.keysOf(key), this.sessionOf(undefined), {
      signal: undefined,
      run: (session) => session.givenBackOf(order + waitUs, cost, tokens),
      answer: ({ answer }) => answer,
    })
  }

  lease(request: LeaseRequest, signal?: CallerSignal): Promise<Grant> {
    const { key, part, least } = request
    const own = this.policies[part] as Policy
    const isAlone = this.policies.length === 1
    const id = newOperationId()
    return this.inLane([this.keyOf(part, key)], this.sessionOf(isAlone ? undefined : part), {
      signal,
      isLease: true,
      run: (session) => {
        const lease = session.lease(request)
        return { answer: { done: true }, lease }
      },
      answer: ({ lease }, nowUs, atUs) => {
        const { booking, endUs, ...made } = lease as MemoryLease
        // What its times count from is the moment at which it was made, which is later than the one at which it was decided.
        const numbers = numbersOfLease({ ...made, endUs: endUs - (atUs - nowUs) })
        if (this.areShared) return grantIn(numbers, own, least, booking?.bookedUs ?? 0)
        if (booking !== undefined) this.granted.addLease(id, booking, { policy: this.policy, part, flowsBack: isRate(own) }, atUs)
        return grantIn(numbers, own, least, id)
      },
    })
  }

  private giveBackGranted(key: string, { grantId, part, cost }: Granted, tokens: number): Promise<Answer> {
    let run = (session: KeySession): void => session.giveBackOf(grantId, cost, tokens)
    if (!this.areShared) {
      const back = this.granted.takeBack(grantId, tokens, cost, this.policy)
      if (back === undefined) return Promise.resolve({ done: false })
      run = (session) => session.giveBackLeased(back.booking, back.tokens)
    }
    return this.inLane([this.keyOf(part, key)], this.sessionOf(this.policies.length === 1 ? undefined : part), {
      signal: undefined,
      run: (session) => {
        run(session)
        return { answer: { done: true } }
      },
      answer: ({ answer }) => answer,
    })
  }

  /** What an operation is about. */
  private chargeOf(operation: Operation): SwappedCharge | undefined {
    switch (operation.verb) {
      case 'giveBack': {
        const { charge } = operation
        return !isGranted(charge) && charge.receipt instanceof SwappedCharge ? charge.receipt : undefined
      }
      case 'release':
      case 'heartbeat':
        return this.permits.get(operation.id)
      default:
        return undefined
    }
  }

  private answered(operation: Operation, result: SessionResult, nowUs: number, atUs: number, order: number): Answer {
    const { answer, charge, permits } = result
    switch (operation.verb) {
      case 'take':
      case 'reserve':
        if (charge?.permits.some((permit) => permit !== undefined)) this.remember(operation.id, charge, atUs)
        return {
          done: answer.done,
          decision: answer.decision as Decision,
          waitUs: Math.max(0, (answer.waitUs ?? 0) - (atUs - nowUs)),
          order,
          receipt: charge,
        }
      case 'heartbeat': {
        const before = this.permits.get(operation.id)
        if (answer.done && permits !== undefined && before !== undefined) this.remember(operation.id, { ...before, permits }, atUs)
        else this.permits.delete(operation.id)
        return answer
      }
      case 'release':
        this.permits.delete(operation.id)
        return answer
      default:
        return answer
    }
  }

  private remember(id: number, charge: SwappedCharge, nowUs: number): void {
    const untilUs = Math.max(...charge.permits.map((permit) => permit?.untilUs ?? 0))
    this.permits.set(id, charge, untilUs, nowUs)
  }

  private sessionOf(part: number | undefined): KeySession {
    const i = part === undefined ? 0 : part + 1
    this.sessions[i] ??= new KeySession(this.policies[part as number] as Policy, this.lengthOf)
    return this.sessions[i]
  }

  private keysOf(key: Key): readonly string[] {
    return keysUnder(this.policy, key).map((own, i) => this.keyOf(i, own))
  }

  private keyOf(part: number, key: string): string {
    return (this.placesOf[part] as (key: string) => string)(key)
  }

  private inLane<Value>(
    keys: readonly string[],
    session: KeySession,
    call: Pick<Work, 'signal' | 'run'> &
      Partial<Pick<Work, 'isReset' | 'isLease'>> & { answer(result: SessionResult, nowUs: number, atUs: number, order: number): Value },
  ): Promise<Value> {
    if (keys.length > 1 && this.lanes.calls.store.swapAll === undefined) {
      const mend = `cannot be charged together in ${this.lanes.calls.store.name}, which has no transactions (swapAll)`
      return Promise.reject(new PolicyError('CROSS_SLOT', 'key', keys.length, mend))
    }
    if (keys.length > 1 && new Set(keys).size < keys.length) {
      return Promise.reject(new PolicyError('POLICY_INVALID', 'policies', keys.length, 'have one name: give each of them its own'))
    }
    return new Promise((resolve, reject) => {
      this.lanes.add({
        keys,
        session,
        signal: call.signal,
        isReset: call.isReset === true,
        isLease: call.isLease === true,
        run: call.run,
        resolve: (result, nowUs, atUs, order) => resolve(call.answer(result, nowUs, atUs, order)),
        reject,
      })
    })
  }
}
