import { holdsPermits } from '../../decision/permit.js'
import { keysUnder } from '../../key.js'
import type { Grant } from '../../lease/grant.js'
import type { Policy } from '../../policy/policy.js'
import {
  type Answer,
  type Backend,
  type ChargingOperation,
  firstKeyOf,
  giveAllBack,
  type HoldOperation,
  type LeaseRequest,
  type Operation,
  reservedBy,
} from '../backend.js'
import type { CallEnds, CallGuard } from './call-guard.js'

const SENT: Answer = { done: true }
const NO_ENDS = {}

/**
 * Adds timeouts and the circuit breaker to a backend; throws `PolicyError` `KEY_INVALID` before anything is sent. A reservation or permit
 * whose answer comes after the timeout is given back. Late tokens of a take stay charged: how many came back meanwhile is unknown, so
 * returning them could return too many.
 */
export class GuardedBackend implements Backend {
  private readonly backend: Backend
  private readonly guard: CallGuard
  private readonly policy: Policy
  private readonly holdsPermits: boolean

  constructor(backend: Backend, guard: CallGuard, policy: Policy) {
    this.backend = backend
    this.guard = guard
    this.policy = policy
    this.holdsPermits = holdsPermits(policy)
  }

  execute(operation: Operation): Promise<Answer> {
    const { backend, guard } = this
    const { verb } = operation
    if (backend.tell !== undefined && verb === 'giveBack' && operation.isSilent) {
      backend.tell(operation)
      return Promise.resolve(SENT)
    }
    keysUnder(this.policy, operation.key)
    const call = guard.begin<Answer>(firstKeyOf(operation.key), this.endsOf(operation))
    if (call.isOver) return call.promise
    try {
      const answer = backend.execute(operation, call)
      if (verb === 'reserve') guard.unwanted.sent(operation.key, answer)
      call.followed(answer)
    } catch (error) {
      call.fail(error)
    }
    return call.promise
  }

  lease(request: LeaseRequest): Promise<Grant> {
    const call = this.guard.begin<Grant>(request.key, NO_ENDS)
    if (call.isOver) return call.promise
    try {
      call.followed(this.backend.lease(request, call))
    } catch (error) {
      call.fail(error)
    }
    return call.promise
  }

  private endsOf(operation: Operation): CallEnds<Answer> {
    if (operation.verb === 'hold') return { late: (answer) => this.unhold(operation, answer) }
    if (operation.verb !== 'take' && operation.verb !== 'reserve') return NO_ENDS
    return {
      late: (answer) => this.undo(operation, answer),
      inTime: ({ done }) => {
        if (done) this.guard.counts.charged += operation.cost
      },
    }
  }

  /** What a late step has opened, or moved, is held for nobody, unless its work goes on with it. */
  private unhold(operation: HoldOperation, { done, hold }: Answer): void {
    const { before, late, record } = operation
    // Of several keys on several servers some may have moved.
    const stands = done ? hold : hold === undefined ? before : undefined
    if (stands === undefined || record !== undefined || (before !== undefined && late === undefined)) return
    const spent = late === undefined ? 0 : late(stands, done)
    if (spent === undefined) return
    const closing: HoldOperation = { ...operation, before: stands, spent, hold: 0, want: 0, least: 0, isDebt: true }
    this.backend.execute(closing).catch(() => undefined)
  }

  private undo(operation: ChargingOperation, answer: Answer): void {
    if (!answer.done) return
    const { key, cost, id } = operation
    if (operation.verb === 'reserve') {
      const reserved = reservedBy(operation, answer)
      this.guard.unwanted.collect(key, reserved.order, () => this.execute(giveAllBack(reserved)))
      return
    }
    this.guard.events.charged(keysUnder(this.policy, key), cost)
    // Without the guard: the server has just answered. If the release is lost, the permit ends after its time to live.
    if (this.holdsPermits) this.backend.execute({ verb: 'release', key, cost, id }).catch(() => undefined)
  }
}
