import { combined, type Decision } from '../../decision/decision.js'
import { keysFor } from '../../key.js'
import type { Grant } from '../../lease/grant.js'
import {
  type Answer,
  type Backend,
  type Charge,
  decisionOf,
  type GiveBackOperation,
  type HoldOperation,
  isGranted,
  type LeaseRequest,
  type OpenHold,
  type Operation,
  type ReserveOperation,
} from '../backend.js'
import type { LeasedTakes } from '../takes/leased-takes.js'
import type { CallGuard } from './call-guard.js'

/** A hold at the key of one policy, and how much that was spent it knows of, beyond what all know. */
interface PartHold {
  readonly hold: OpenHold | undefined
  readonly told: number
}

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
      case 'hold':
        return this.moved(operation, keys)
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

  /**
   * A step of a hold at each key by itself. What opens at some keys and not at others is closed again: a hold charges nothing. A step that some keys
   * refuse has told the others what was spent, which is not said twice.
   */
  private async moved(operation: HoldOperation, keys: readonly string[]): Promise<Answer> {
    // What comes late of one key says nothing of the hold at all of them.
    const one = { ...operation, count: undefined, late: undefined }
    const { before, spent, record, isDebt } = one
    if (record !== undefined) return this.backend.execute(operation)
    const known = before?.state as readonly PartHold[] | undefined
    const steps = await Promise.allSettled(
      this.parts.map(async (part, i): Promise<Answer> => {
        const own = known?.[i]
        return part.execute({ ...one, key: keys[i] as string, before: own?.hold, spent: Math.max(0, spent - (own?.told ?? 0)) })
      }),
    )
    const fault = steps.find((step) => step.status === 'rejected')
    const moved = steps.map((step) => (step.status === 'fulfilled' ? step.value : undefined))
    const done = moved.every((answer) => answer?.done)
    const answers = done || before !== undefined ? await this.evened(one, keys, moved, known) : moved
    if (before === undefined && !done) {
      for (const [i, answer] of answers.entries()) {
        const closing = {
          ...one,
          key: keys[i] as string,
          before: answer?.hold,
          spent: 0,
          hold: 0,
          want: 0,
          least: 0,
          isDebt: true,
        } as const
        if (answer?.done) this.parts[i]?.execute(closing).catch(() => undefined)
      }
    }
    if (fault !== undefined) throw fault.reason
    const decision = combined(answers.map((answer) => decisionOf(answer as Answer)))
    const state = answers.map((answer, i): PartHold => {
      if (answer?.done) return { hold: answer.hold, told: done ? 0 : spent }
      return known?.[i] ?? { hold: undefined, told: 0 }
    })
    const holds = state.map(({ hold }) => hold)
    if (before === undefined && !done) return { done, decision }
    const least = (of: (hold: OpenHold) => number): number => Math.min(...holds.map((hold) => (hold === undefined ? 0 : of(hold))))
    // Unless all have moved, the grant of before is what they agree on.
    const hold: OpenHold = {
      rest: least(({ rest }) => rest),
      granted: done ? least(({ granted }) => granted) : (before?.granted ?? 0),
      forUs: least(({ forUs }) => forUs),
      over: isDebt ? Math.max(0, ...holds.map((each) => each?.over ?? 0)) : 0,
      state,
    }
    return { done, decision, hold }
  }

  /** What one key holds beyond another cannot be spent: it is free again. One that refused holds what it did, less what was spent. */
  private evened(
    operation: HoldOperation,
    keys: readonly string[],
    answers: readonly (Answer | undefined)[],
    known: readonly PartHold[] | undefined,
  ): Promise<readonly (Answer | undefined)[]> {
    const leastOf = (tokens: (hold: OpenHold) => number): number => {
      const each = answers.map((answer, i) => {
        const own = known?.[i]
        if (answer?.done) return answer.hold === undefined ? 0 : tokens(answer.hold)
        return own?.hold === undefined ? 0 : tokens(own.hold) - Math.max(0, operation.spent - own.told)
      })
      return Math.max(0, Math.min(...each))
    }
    const heldOf = ({ rest, granted }: OpenHold): number => rest + granted
    const [hold, want] = [leastOf(heldOf), leastOf(({ granted }) => granted)]
    const each = answers.map(async (answer, i): Promise<Answer | undefined> => {
      if (!answer?.done || answer.hold === undefined || heldOf(answer.hold) <= hold) return answer
      const less = { ...operation, key: keys[i] as string, before: answer.hold, spent: 0, hold, want, least: 0, isDebt: true } as const
      const evened = await this.parts[i]?.execute(less).catch(() => undefined)
      return evened?.hold === undefined ? answer : { ...evened, hold: { ...evened.hold, over: answer.hold.over } }
    })
    return Promise.all(each)
  }

  private async reserveFromLeases({ key, cost }: ReserveOperation): Promise<Answer> {
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
