import type { Decision } from '../decision/decision.js'
import { holdsPermits } from '../decision/permit.js'
import { type Account, ChargedReservation } from '../decision/reservation.js'
import type { Key } from '../limiter.js'
import { type Charge, decisionOf, isGranted, type Reserved } from './backend.js'
import type { KeyChanges } from './key-changes.js'
import type { LeasedTakes } from './takes/leased-takes.js'

/**
 * What one operation charges, at the store or of leased tokens, and the one rule of what comes back of it. Create it before the operation: what was
 * charged before a reset is forgiven, and before a change of the numbers may be, and does not come back.
 */
export class StoreAccount implements Account<'later'> {
  /** The operation adds what it charges. */
  readonly charges: Charge[] = []
  protected readonly changes: KeyChanges
  protected readonly key: Key
  private readonly cost: number
  private readonly generation: number
  private readonly resets: number
  /** From which tokens were drawn, also where an update has replaced them. */
  private readonly leases: LeasedTakes | undefined

  constructor(changes: KeyChanges, key: Key, cost: number) {
    this.changes = changes
    this.key = key
    this.cost = cost
    this.generation = changes.inForce.generation
    this.resets = changes.resets
    this.leases = changes.inForce.now.leases
  }

  async giveBack(tokens: number): Promise<Decision> {
    const { changes, key, cost, reserved } = this
    const { backend, policy } = changes.inForce.now
    const isChanged = this.generation !== changes.inForce.generation || changes.isResetSince(key, this.resets)
    const isForgiven = isChanged && policy.algorithm !== 'concurrency'
    if (reserved === undefined) {
      if (isForgiven) return this.state()
      await this.leases?.giveBack(key, this.charges, tokens)
      changes.released(key)
      return this.state()
    }
    if (!isForgiven) return changes.make({ verb: 'giveBack', key, charge: reserved, tokens }, 'kept')
    // A place is held or not, whatever the numbers.
    if (holdsPermits(policy) && tokens === cost) await backend.execute({ verb: 'release', key, cost, id: reserved.id })
    return this.state()
  }

  penalize(tokens: number): Promise<Decision> {
    return this.changes.make({ verb: 'penalize', key: this.key, tokens })
  }

  /** The charge at the store; undefined where leases were spent, or nothing was charged. */
  private get reserved(): Reserved | undefined {
    return this.charges.find((charge) => !isGranted(charge)) as Reserved | undefined
  }

  protected state(): Promise<Decision> {
    return this.changes.inForce.now.fallback.execute({ verb: 'peek', key: this.key, cost: 1 }).then(decisionOf)
  }
}

/** The account of a reservation, whose holder is told how the key stands. */
export class AskedAccount extends StoreAccount {
  peek(): Promise<Decision> {
    return this.state()
  }
}

/** Over a store misuse rejects. */
export class LaterReservation extends ChargedReservation<'later'> {
  override async settle(actualCost: number): Promise<Decision> {
    return super.settle(actualCost)
  }
}
