import { combined, type Decision } from '../../decision/decision.js'
import { keysFor } from '../../key.js'
import type { Grant } from '../../lease/grant.js'
import {
  type Answer,
  type Backend,
  type Charge,
  decisionOf,
  type GiveBackOperation,
  isGranted,
  type LeaseRequest,
  type Operation,
} from '../backend.js'
import type { CallGuard } from '../calls/call-guard.js'
import type { LeasedTakes } from './leased-takes.js'

/** The receipt of a reservation that was made of leased tokens. */
interface LeasedReceipt {
  readonly leases: LeasedTakes
  readonly charges: readonly Charge[]
}

/**
 * A leased `allOf` whose keys may be in different hash slots of a cluster, where no call can change them together. Operations that mean
 * something to each policy alone go to each; what has to be charged together is taken from leases.
 */
export class CrossSlotBackend implements Backend {
  private readonly backend: Backend
  private readonly parts: readonly Backend[]
  private readonly leases: LeasedTakes
  private readonly guard: CallGuard

  /** @param parts the backend of each policy. */
  constructor(backend: Backend, parts: readonly Backend[], leases: LeasedTakes, guard: CallGuard) {
    this.backend = backend
    this.parts = parts
    this.leases = leases
    this.guard = guard
  }

  async execute(operation: Operation): Promise<Answer> {
    if (operation.verb === 'giveBack') return this.giveBack(operation)
    const keys = keysFor(this.parts.length, operation.key)
    if (this.guard.isTogether(keys)) return this.backend.execute(operation)
    switch (operation.verb) {
      case 'reserve':
        return this.reserveFromLeases(operation)
      case 'charge':
        return this.each(keys, (key, i) => ({ verb: 'charge', key, tokens: [operation.tokens[i] ?? 0] }))
      case 'peek':
      case 'refund':
      case 'penalize':
      case 'block':
      case 'reset':
        return this.each(keys, (key) => ({ ...operation, key }))
      default:
        return this.backend.execute(operation)
    }
  }

  lease(request: LeaseRequest): Promise<Grant> {
    return this.backend.lease(request)
  }

  private async each(keys: readonly string[], operationOf: (key: string, i: number) => Operation): Promise<Answer> {
    const answers = await Promise.all(this.parts.map((part, i) => part.execute(operationOf(keys[i] as string, i))))
    return { done: answers.every(({ done }) => done), decision: combined(answers.map(decisionOf)) }
  }

  private async reserveFromLeases({ key, cost }: Extract<Operation, { verb: 'reserve' }>): Promise<Answer> {
    const charges: Charge[] = []
    const decision: Decision = await this.leases.take(key, cost, charges)
    return { done: decision.allowed, decision, receipt: { leases: this.leases, charges } satisfies LeasedReceipt }
  }

  /** The leases are those that were drawn from, also where an update has replaced them. */
  private async giveBack(operation: GiveBackOperation): Promise<Answer> {
    const { key, charge, tokens } = operation
    const { leases, charges } = ((isGranted(charge) ? undefined : charge.receipt) ?? {}) as Partial<LeasedReceipt>
    if (leases === undefined || charges === undefined) return this.backend.execute(operation)
    await leases.giveBack(key, charges, tokens)
    return this.execute({ verb: 'peek', key, cost: 1 })
  }
}
