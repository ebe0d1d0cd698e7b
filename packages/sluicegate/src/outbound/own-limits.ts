import { createLimiter } from '../create-limiter.js'
import { PolicyError } from '../errors.js'
import type { Limiter } from '../limiter.js'
import type { Policy } from '../policy/policy.js'
import type { Clock } from '../time/clock.js'
import type { OutboundLimiter } from './outbound-options.js'

const MAX_POLICIES = 1_000

/** What the limiters of keys are made from. */
interface KeyLimitersParts {
  readonly policy: Policy | undefined
  readonly policyFor: ((key: string) => Policy | undefined) | undefined
  readonly limiter: OutboundLimiter | undefined
  readonly maxKeys: number
  readonly clock: Clock
}

/** The limiter of each key: the one that was given, or one for each policy, made when it is first needed. */
export class KeyLimiters {
  private readonly parts: KeyLimitersParts
  private readonly made = new Map<string, Limiter>()

  /** @throws {PolicyError} `POLICY_INVALID` */
  constructor(parts: KeyLimitersParts) {
    this.parts = parts
    // An invalid policy throws when the options are given.
    if (parts.policy !== undefined) this.limiterOf(parts.policy)
  }

  /** Undefined for a key without a limit. @throws {PolicyError} `POLICY_INVALID` */
  of(key: string): OutboundLimiter | undefined {
    const { policy, policyFor, limiter } = this.parts
    if (limiter !== undefined) return limiter
    const found = policyFor?.(key) ?? policy
    return found === undefined ? undefined : this.limiterOf(found)
  }

  close(): void {
    for (const limiter of this.made.values()) limiter.close()
  }

  private limiterOf(policy: Policy): OutboundLimiter {
    // Policies with the same content have one limiter.
    const name = JSON.stringify(policy)
    const known = this.made.get(name)
    if (known !== undefined) return known
    if (this.made.size >= MAX_POLICIES) {
      throw new PolicyError('POLICY_INVALID', 'policyFor', policy, `returned more than ${MAX_POLICIES} different policies`)
    }
    const { maxKeys, clock } = this.parts
    // Each key waits at most once.
    const limiter = createLimiter(policy, { maxKeys, maxWaiters: maxKeys, clock })
    this.made.set(name, limiter)
    return limiter
  }
}
