import { holdsPermits } from '../decision/permit.js'
import { PolicyError } from '../errors.js'
import type { Grant } from '../lease/grant.js'
import type { Policy } from '../policy/policy.js'
import { type Answer, type Backend, type LeaseRequest, type Operation, withoutHolds } from '../shared/backend.js'
import type { Link } from './link.js'
import { decisionIn, grantIn, heldIn, numbersIn, plannedRequest, type Request, requestOf, type SentOperation } from './message.js'

/**
 * The state of one policy at its owner. One operation goes this way:
 *
 * 1. `requestOf` makes a request of it, an array (`message.ts` is the protocol).
 * 2. The {@link Link} sends all requests of a turn as one message: to a primary process over its channel, to a Durable Object over HTTP.
 * 3. There an `OwnerSession` carries them out in order on the limiter in its memory, and remembers what this process was granted.
 * 4. The numbers of the answer become a decision, or a grant.
 */
export class LinkBackend implements Backend {
  private readonly link: Link
  private readonly policy: Policy
  private readonly plans: readonly (Policy | null)[] | undefined

  /** @param own the limiter's own policy, where this one has plans of its levels. */
  constructor(link: Link, policy: Policy, own?: Policy) {
    this.link = link
    this.policy = policy
    this.plans = own && plansIn(policy, own)
  }

  async execute(operation: Operation): Promise<Answer> {
    const { link, policy } = this
    switch (operation.verb) {
      case 'take':
        // With a receipt, which a reservation for now has.
        if (operation.canSettle) return this.execute({ ...operation, verb: 'reserve', maxWaitUs: 0 })
        break
      case 'reserve': {
        const most = Math.min(Math.floor(operation.maxWaitUs), Number.MAX_SAFE_INTEGER)
        const answer = await link.request(this.requestOf({ ...operation, maxWaitUs: most }))
        const [charged, waitUs = 0, ...numbers] = numbersIn(answer, 2)
        return { done: charged === 1, waitUs, decision: decisionIn(numbers, policy), order: operation.id }
      }
      case 'release':
      case 'heartbeat':
        return { done: numbersIn(await link.request(this.requestOf(operation)), 1)[0] === 1 }
      case 'hold':
        if (operation.record !== undefined) throw withoutHolds('the owner')
        return heldIn(await link.request(this.requestOf(operation)), policy)
    }
    const decision = decisionIn(await link.request(this.requestOf(operation)), policy)
    return { done: decision.allowed, decision }
  }

  async lease(lease: LeaseRequest): Promise<Grant> {
    const { link, policy } = this
    const request = this.requestOf({ verb: 'lease', ...lease })
    return grantIn(await link.request(request), policy.policies?.[lease.part] ?? policy, lease.least, request[0])
  }

  /** The owner gets it in order with all requests, also from a limiter that was closed and gets no answers. */
  tell(operation: Operation): void {
    this.link.tell(this.requestOf(operation))
  }

  private requestOf(operation: SentOperation): Request {
    const request = requestOf(operation)
    return this.plans === undefined ? request : plannedRequest(request, this.plans)
  }
}

/** @throws {PolicyError} `POLICY_INVALID` for a level of permits, which in memory belong to the policy that gave them. */
function plansIn({ policies = [] }: Policy, own: Policy): readonly (Policy | null)[] {
  return policies.map((plan, i) => {
    if (JSON.stringify(plan) === JSON.stringify(own.policies?.[i])) return null
    if (!holdsPermits(plan)) return plan
    throw new PolicyError(
      'POLICY_INVALID',
      `policyFor.${plan.name}`,
      plan,
      'is of concurrency, whose permits stay under the policy that gave them',
    )
  })
}
