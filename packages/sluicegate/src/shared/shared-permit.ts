import type { Decision } from '../decision/decision.js'
import { emptyPermit, holdsPermits, type Permit, PermitDecision } from '../decision/permit.js'
import { droppable } from '../dropped-promise.js'
import type { Key } from '../limiter.js'
import type { Policy } from '../policy/policy.js'
import type { Backend } from './backend.js'

/** A permit that the backend holds. Of a denied decision it holds nothing. */
export class SharedPermit extends PermitDecision implements Permit<'later'> {
  /** Releases or renews it at the backend; true if it was still held. */
  #ask: ((verb: 'release' | 'heartbeat') => Promise<boolean>) | undefined
  #released: () => void = () => undefined

  constructor(decision: Decision, ask?: (verb: 'release' | 'heartbeat') => Promise<boolean>) {
    super(decision)
    this.#ask = decision.allowed ? ask : undefined
  }

  /** A permit that takes no place at the backend. For its holder it is like any other until it is released. */
  static empty(decision: Decision): SharedPermit {
    const own = emptyPermit(decision)
    return new SharedPermit(decision, async (verb) => own[verb]())
  }

  /** Calls `released` once the place is free again. */
  onRelease(released: () => void): void {
    this.#released = released
  }

  release(): Promise<boolean> {
    return droppable(this.#release(), 'release', () => this.policy)
  }

  heartbeat(): Promise<boolean> {
    return droppable(this.#heartbeat(), 'heartbeat', () => this.policy)
  }

  async #release(): Promise<boolean> {
    const ask = this.#ask
    this.#ask = undefined
    const isReleased = (await ask?.('release')) ?? false
    if (isReleased) this.#released()
    return isReleased
  }

  async #heartbeat(): Promise<boolean> {
    const ask = this.#ask
    const isRenewed = (await ask?.('heartbeat')) ?? false
    if (!isRenewed && this.#ask === ask) this.#ask = undefined
    return isRenewed
  }

  [Symbol.dispose](): void {
    // If this fails, the permit ends after `ttl`.
    void this.release()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.release()
  }
}

/**
 * What operation `id` took, as its holder sees it: under a policy with permits a permit, which the backend knows by that id. A decision of
 * an outage is a permit already.
 */
export function withPermit(
  { policy, backend }: { readonly policy: Policy; readonly backend: Backend },
  decision: Decision,
  { key, cost, id }: { readonly key: Key; readonly cost: number; readonly id: number },
): Decision {
  if (!holdsPermits(policy) || decision instanceof SharedPermit) return decision
  return new SharedPermit(decision, (verb) => backend.execute({ verb, key, cost, id }).then(({ done }) => done))
}
