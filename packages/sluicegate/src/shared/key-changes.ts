import type { Decision } from '../decision/decision.js'
import { decisionOf, type Operation } from './backend.js'
import type { PolicyInForce } from './policy-in-force.js'
import type { ForgottenTokens } from './takes/lease-table.js'
import type { SharedWaiting } from './waiting/shared-waiting.js'

/** Operations that change a key at the store, with what this process then forgets of the key, and whom it wakes. */
export class KeyChanges {
  readonly inForce: PolicyInForce
  private readonly waiting: Pick<SharedWaiting, 'released'>

  constructor(inForce: PolicyInForce, waiting: Pick<SharedWaiting, 'released'>) {
    this.inForce = inForce
    this.waiting = waiting
  }

  /** @param held what becomes of tokens that are leased; `kept`: they stay. */
  async make(operation: Operation, held?: ForgottenTokens | 'kept'): Promise<Decision> {
    const { leases, backend } = this.inForce.now
    const { key } = operation
    // Tokens that expire while the backend forgets its leases would reduce later charges when returned.
    if (held === 'dropped') leases?.forget(key, held)
    const decision = decisionOf(await backend.execute(operation))
    if (held === 'kept') leases?.refunded(key, decision)
    else leases?.forget(key, held)
    this.waiting.released(key, decision.retryAfterMs)
    return decision
  }

  /** Tokens of the key came back at once: whoever waits may have them. */
  released(key: Operation['key']): void {
    this.waiting.released(key)
  }
}
