import { blockUs, checkedCost, checkedTokens } from '../arguments.js'
import type { Decision } from '../decision.js'
import { denials } from '../diagnostics.js'
import type { BoundKey, Key, Limiter, LimiterHandle, WaitOptions } from '../limiter.js'
import { emptyPermit, holdsPermits } from '../permit.js'
import type { Duration } from '../policy/duration.js'
import type { Policy } from '../policy/policy.js'
import { emptyReservation, type Reservation } from '../reservation.js'
import { shownAs } from '../shown.js'
import { culpritIn, type KeyLists, type PostedKeyList, verdictOn } from './key-list.js'
import { atOnce, WrappedLimiter } from './wrapped-limiter.js'

/** What the handle of a {@link ListedLimiter} carries beside that of its inner limiter. */
export interface ListedHandle<Answer extends Decision = Decision> extends LimiterHandle<Answer> {
  readonly allow?: PostedKeyList
  readonly deny?: PostedKeyList
}

/** What a {@link ListedLimiter} is made of. */
export interface ListedLimiterParts<Answer extends Decision> extends KeyLists {
  readonly inner: Limiter<Answer>
  /** The policy that the limiter within has for a key. */
  readonly policyOf: (key: Key) => Policy
}

/**
 * Keys that always pass and keys that never do. The inner limiter is not called for them: nothing is counted, and no verb changes
 * anything. A call with several keys (`allOf`) is denied if one of them is on the deny list, and passes uncounted only if all are on the
 * allow list; otherwise all of them are counted.
 */
export class ListedLimiter<Answer extends Decision> extends WrappedLimiter<Answer> implements Limiter<Answer> {
  private readonly parts: ListedLimiterParts<Answer>

  constructor(parts: ListedLimiterParts<Answer>) {
    super(parts.inner)
    this.parts = parts
  }

  take(key: Key, cost = 1): Answer {
    return this.taken(key, cost) ?? this.inner.take(key, cost)
  }

  peek(key: Key, cost = 1): Decision {
    return this.foreseen(key, cost) ?? this.inner.peek(key, cost)
  }

  async wait(key: Key, options: WaitOptions = {}): Promise<Answer> {
    if (verdictOn(key, this.parts) === undefined) return this.inner.wait(key, options)
    return atOnce(key, options, (cost) => this.take(key, cost))
  }

  reserve(key: Key, cost: number): Reservation {
    const decision = this.foreseen(key, cost)
    if (decision === undefined) return this.inner.reserve(key, cost)
    return emptyReservation(decision, () => decision)
  }

  refund(key: Key, tokens: number): Decision {
    const listed = this.foreseen(key)
    if (listed === undefined) return this.inner.refund(key, tokens)
    checkedTokens(tokens)
    return listed
  }

  penalize(key: Key, tokens: number): Decision {
    const listed = this.foreseen(key)
    if (listed === undefined) return this.inner.penalize(key, tokens)
    checkedTokens(tokens)
    return listed
  }

  block(key: Key, duration: Duration): Decision {
    const listed = this.foreseen(key)
    if (listed === undefined) return this.inner.block(key, duration)
    blockUs(duration)
    return listed
  }

  reset(key: Key): Decision {
    return this.foreseen(key) ?? this.inner.reset(key)
  }

  /** A function is called for the key at each take and peek, not only here. */
  key(key: Key): BoundKey<Answer> {
    const bound = this.inner.key(key)
    const listed: BoundKey<Answer> = {
      key: bound.key,
      take: (cost = 1) => this.taken(bound.key, cost) ?? bound.take(cost),
      peek: (cost = 1) => this.foreseen(bound.key, cost) ?? bound.peek(cost),
    }
    return shownAs(listed, 'BoundKey', this.toJSON())
  }

  override handle(): LimiterHandle<Answer> {
    const { allow, deny } = this.parts
    const handle: ListedHandle<Answer> = { ...this.inner.handle(), allow: allow.posted, deny: deny.posted }
    return shownAs(handle, 'LimiterHandle', {})
  }

  private taken(key: Key, cost: number): Answer | undefined {
    const decision = this.foreseen(key, cost)
    if (decision === undefined) return undefined
    if (!decision.allowed && denials.hasSubscribers)
      denials.publish({ policy: decision.policy, key: culpritIn(key, this.parts), cost, decision })
    return (holdsPermits(this.parts.policyOf(key)) ? emptyPermit(decision) : decision) as Answer
  }

  /** The decision on a key that is on a list. */
  private foreseen(key: Key, cost = 1): Decision | undefined {
    const verdict = verdictOn(key, this.parts)
    if (verdict === undefined) return undefined
    checkedCost(cost)
    return listedDecision(this.parts.policyOf(key), verdict === 'allow')
  }
}

/** The decision on a key that is on a list. */
export function listedDecision(policy: Policy, allowed: boolean): Decision {
  const { name, limit, burst, policies } = policy
  if (policies !== undefined) {
    const parts = policies.map((part) => listedDecision(part, allowed))
    const binding = parts.reduce((least, part) => (part.remaining < least.remaining ? part : least))
    return { ...binding, parts }
  }
  const retryAfterMs = allowed ? 0 : Number.POSITIVE_INFINITY
  // Nothing is counted, so nothing has to refill.
  return { allowed, limit, remaining: allowed ? burst : 0, retryAfterMs, resetAfterMs: 0, policy: name, source: 'memory' }
}
