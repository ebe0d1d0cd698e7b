import { keysUnder } from '../all-of-keys.js'
import { holdsPermits } from '../empty-permit.js'
import type { Grant } from '../lease/grant.js'
import type { Policy } from '../policy/policy.js'
import { type Answer, type Backend, bookedBy, firstKeyOf, type LeaseRequest, type Operation } from './backend.js'
import type { CallGuard } from './call-guard.js'

const SENT: Answer = { done: true }

/**
 * Adds timeouts and the circuit breaker to a backend; throws `PolicyError` `KEY_INVALID` before anything is sent. A reservation or permit whose answer comes after the timeout is given back. Late
 * tokens of a take stay charged: how many came back meanwhile is unknown, so returning them could return too many.
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
    if (backend.tell !== undefined && (verb === 'discard' || verb === 'return')) {
      backend.tell(operation)
      return Promise.resolve(SENT)
    }
    keysUnder(this.policy, operation.key)
    const key = firstKeyOf(operation.key)
    if (verb !== 'take' && verb !== 'reserve') return guard.guarded(key, (signal) => backend.execute(operation, signal))
    return guard.guarded(
      key,
      (signal) => {
        const answer = backend.execute(operation, signal)
        if (verb === 'reserve') guard.unwanted.sent(operation.key, answer)
        return answer
      },
      (late) => this.undo(operation, late),
      ({ done }) => {
        if (done) guard.counts.charged += operation.cost
      },
    )
  }

  lease(request: LeaseRequest): Promise<Grant> {
    return this.guard.guarded(request.key, (signal) => this.backend.lease(request, signal))
  }

  private undo(operation: Extract<Operation, { verb: 'take' | 'reserve' }>, answer: Answer): void {
    if (!answer.done) return
    const { key, cost, id } = operation
    if (operation.verb === 'reserve') {
      const booked = bookedBy(operation, answer)
      this.guard.unwanted.collect(key, booked.order, () => this.execute({ verb: 'discard', key, booked }))
      return
    }
    this.guard.events.charged(keysUnder(this.policy, key), cost)
    // Without the guard: the server has just answered. If the release is lost, the permit ends after its time to live.
    if (this.holdsPermits) this.backend.execute({ verb: 'release', key, cost, id }).catch(() => undefined)
  }
}
