import { checkedCost } from '../arguments.js'
import type { Clock } from '../clock.js'
import { createLimiter } from '../create-limiter.js'
import type { Decision } from '../decision.js'
import { emptyPermit, holdsPermits } from '../empty-permit.js'
import type { Key, Limiter } from '../limiter.js'
import type { Policy } from '../policy.js'
import type { WaitRequest } from '../wait-request.js'
import { shareOfPolicy } from './share-of-policy.js'

/** What decides while the store cannot be reached. */
export type OutageMode = 'local' | 'open' | 'closed'

/** Decides without the store, by the caller's choice: with a share of the budget, by letting all pass, or none. */
export class Outage {
  private readonly mode: OutageMode
  private readonly policy: Policy
  private readonly local: Limiter | undefined
  /** Keys that were decided about here, as far as it takes to account for them. */
  private readonly used = new Map<string, Key>()
  decisions = 0

  constructor(mode: OutageMode, policy: Policy, share: number, clock: Clock) {
    this.mode = mode
    this.policy = policy
    if (mode === 'local') this.local = createLimiter(shareOfPolicy(policy, share), { clock })
  }

  /** @param pausedMs until the store is asked again. */
  take(key: Key, cost: number, pausedMs: number): Decision {
    this.decisions++
    if (this.local === undefined) return this.withPermit(this.flat(cost, pausedMs))
    this.used.set(typeof key === 'string' ? key : JSON.stringify(key), key)
    return this.told(this.local.take(key, cost))
  }

  peek(key: Key, cost: number, pausedMs: number): Decision {
    this.decisions++
    return this.local === undefined ? this.flat(cost, pausedMs) : this.told(this.local.peek(key, cost))
  }

  /** Waits for a share of the budget; where none is handed out, answers at once. */
  async wait({ key, cost, maxWaitMs, signal }: WaitRequest, pausedMs: number): Promise<Decision> {
    if (this.local === undefined) return this.take(key, cost, pausedMs)
    this.decisions++
    this.used.set(typeof key === 'string' ? key : JSON.stringify(key), key)
    return this.told(await this.local.wait(key, { cost, maxWaitMs, ...(signal && { signal }) }))
  }

  /**
   * What was used of the keys whose store is back: tokens each that have not come back by themselves. From then on nothing is used of them
   * here. Permits are left to whoever holds them.
   */
  *settle(isBack: (key: Key) => boolean): Generator<readonly [key: Key, tokens: number]> {
    const { local, policy } = this
    for (const [name, key] of this.used) {
      if (!isBack(key)) continue
      this.used.delete(name)
      if (local === undefined || holdsPermits(policy)) continue
      const { parts, ...whole } = local.peek(key)
      const spent = (parts ?? [whole]).map(({ remaining }, i) => (local.policy.policies?.[i] ?? local.policy).burst - remaining)
      local.reset(key)
      const most = Math.max(...spent)
      if (most > 0) yield [key, most]
    }
  }

  private flat(cost: number, pausedMs: number): Decision {
    const { limit, burst, name } = this.policy
    const isPossible = checkedCost(cost) <= burst
    const allowed = this.mode === 'open' && isPossible
    const retryAfterMs = allowed ? 0 : isPossible ? Math.max(1, Math.ceil(pausedMs)) : Number.POSITIVE_INFINITY
    return { allowed, limit, remaining: 0, retryAfterMs, resetAfterMs: 0, policy: name, source: 'outage' }
  }

  private withPermit(decision: Decision): Decision {
    return holdsPermits(this.policy) ? emptyPermit(decision) : decision
  }

  /** As of the policy that was asked for, whatever share of it is at hand. */
  private told(decision: Decision): Decision {
    const { parts } = decision
    const whole = asOutage(decision, this.policy)
    if (parts === undefined) return whole
    return Object.assign(whole, { parts: parts.map((part, i) => asOutage(part, this.policy.policies?.[i] ?? this.policy)) })
  }
}

/** Changed in place: a permit holds what its methods give back. */
function asOutage(decision: Decision, policy: Policy): Decision {
  const { limit } = policy.policies?.find(({ name }) => name === decision.policy) ?? policy
  return Object.assign(decision, { source: 'outage', limit })
}
