import type { Decision } from '../decision/decision.js'
import type { Grant } from '../lease/grant.js'
import type { Policy } from '../policy/policy.js'
import {
  type Answer,
  type Backend,
  type GiveBackOperation,
  isGranted,
  type LeaseRequest,
  newOperationId,
  type Operation,
} from '../shared/backend.js'
import { decisionIn, grantIn, numbersIn } from './message.js'
import type { RequestLink } from './primary-link.js'

/** The state of one policy in the primary process: each operation is one request over the channel. */
export class ClusterBackend implements Backend {
  private readonly link: RequestLink
  private readonly policy: Policy

  constructor(link: RequestLink, policy: Policy) {
    this.link = link
    this.policy = policy
  }

  execute(operation: Operation): Promise<Answer> {
    const { verb, key } = operation
    switch (verb) {
      case 'take':
        return this.take(operation)
      case 'reserve':
        return this.reserve(operation)
      case 'peek':
        return this.decided('peek', key, operation.cost)
      case 'refund':
      case 'penalize':
      case 'charge':
        return this.decided(verb, key, operation.tokens)
      case 'block':
        return this.decided('block', key, operation.us / 1000)
      case 'reset':
        return this.decided('reset', key)
      case 'redeem':
        return this.decided('redeem', key, operation.charge.id)
      case 'giveBack':
        return this.decided('giveBack', key, ...givenBack(operation))
      case 'release':
      case 'heartbeat':
        return this.held(verb, operation)
    }
  }

  async lease({ key, part, want, least }: LeaseRequest): Promise<Grant> {
    const { link, policy } = this
    const id = newOperationId()
    const answer = await link.request(id, 'lease', key, want, 0, least, part)
    return grantIn(answer, policy.policies?.[part] ?? policy, least, id)
  }

  /** The primary gets it in order with all requests, also from a limiter that was closed and gets no answers. */
  tell(operation: Operation): void {
    const { link } = this
    if (operation.verb === 'giveBack') link.tell('giveBack', operation.key, ...givenBack(operation))
    else void this.execute(operation).catch(() => undefined)
  }

  private take(operation: Extract<Operation, { verb: 'take' }>): Promise<Answer> {
    return operation.isHeld ? this.reserve({ ...operation, maxWaitUs: 0 }) : this.taken(operation)
  }

  private async taken({ key, cost, id }: Extract<Operation, { verb: 'take' }>): Promise<Answer> {
    const decision = this.decisionIn(await this.link.request(id, 'take', key, cost))
    return { done: decision.allowed, decision }
  }

  private async reserve({
    key,
    cost,
    id,
    maxWaitUs,
  }: Pick<Extract<Operation, { verb: 'reserve' }>, 'key' | 'cost' | 'id' | 'maxWaitUs'>): Promise<Answer> {
    const mostUs = Math.min(Math.floor(maxWaitUs), Number.MAX_SAFE_INTEGER)
    const [charged, waitUs = 0, ...numbers] = numbersIn(await this.link.request(id, 'reserve', key, cost, mostUs), 2)
    return { done: charged === 1, waitUs, decision: this.decisionIn(numbers), order: id }
  }

  private async decided(verb: string, ...args: readonly unknown[]): Promise<Answer> {
    const decision = this.decisionIn(await this.link.request(newOperationId(), verb, ...args))
    return { done: decision.allowed, decision }
  }

  private async held(
    verb: string,
    { key, id }: { readonly key: unknown; readonly id: number },
    ...args: readonly unknown[]
  ): Promise<Answer> {
    const [done] = numbersIn(await this.link.request(newOperationId(), verb, key, id, ...args), 0)
    return { done: done === 1 }
  }

  private decisionIn(answer: readonly unknown[]): Decision {
    return decisionIn(answer, this.policy)
  }
}

function givenBack({ charge, tokens }: GiveBackOperation): readonly number[] {
  return [isGranted(charge) ? charge.grantId : charge.id, tokens, charge.cost]
}
