import { BoundedMap } from '../bounded-map.js'
import type { Decision } from '../decision/decision.js'
import { nameOf } from '../key.js'
import { decisionOf, type Operation } from './backend.js'
import type { PolicyInForce } from './policy-in-force.js'
import type { ForgottenTokens } from './takes/lease-table.js'
import type { SharedWaiting } from './waiting/shared-waiting.js'

/** The most keys of which it is known that they were reset. */
const MOST_KEYS = 10_000

/** Operations that change a key at the store, with what this process then forgets of the key, and whom it wakes. */
export class KeyChanges {
  /** How many resets this process has made. */
  resets = 0
  /** The latest of them of each key. */
  private readonly resetKeys = new BoundedMap<string, number>(MOST_KEYS)
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
    if (operation.verb === 'reset') this.resetKeys.set(nameOf(key), ++this.resets)
    // Tokens that expire while the backend forgets its leases would reduce later charges when returned.
    if (held === 'dropped') leases?.forget(key, held)
    const decision = decisionOf(await backend.execute(operation))
    if (held === 'kept') leases?.refunded(key, decision)
    else leases?.forget(key, held)
    this.waiting.released(key, decision.retryAfterMs)
    return decision
  }

  /** Whether the key was reset here after so many resets. */
  isResetSince(key: Operation['key'], resets: number): boolean {
    return (this.resetKeys.get(nameOf(key)) ?? 0) > resets
  }

  /** Tokens of the key came back at once: whoever waits may have them. */
  released(key: Operation['key']): void {
    this.waiting.released(key)
  }
}
