import { type Awaitable, chained, type When } from '../awaitable.js'
import type { Key, WaitOptions } from '../limiter.js'
import type { Policy } from '../policy/policy.js'
import type { Decision } from './decision.js'
import { isPermit } from './permit.js'
import { type Account, ChargedReservation, type Reservation, type Settling, TAKE, uncharged, WAIT } from './reservation.js'

/** Any limiter: what one that this library did not make has charged comes back by its own verbs. */
export interface AnyLimiter {
  readonly policy?: Policy
  policyOf?(key: Key): Policy
  take?(key: Key, cost?: number): Awaitable<Decision>
  refund(key: Key, tokens: number): unknown
  penalize?(key: Key, tokens: number): unknown
}

/** A take that can be settled. @param nowMs measures how long ago a limiter of the user's charged. */
export function takeOf(
  limiter: AnyLimiter & { take(key: Key, cost?: number): Awaitable<Decision> },
  key: Key,
  cost: number,
  nowMs: () => number,
): Awaitable<Reservation<When>> {
  if (isSettling(limiter)) return limiter[TAKE](key, cost)
  return refunding(limiter, key, cost, nowMs, () => limiter.take(key, cost))
}

/** A wait that can be settled. */
export function waitOf(
  limiter: AnyLimiter & { wait(key: Key, options?: WaitOptions): Promise<Decision> },
  key: Key,
  options: WaitOptions & { readonly cost: number },
  nowMs: () => number,
): Promise<Reservation<When>> {
  if (isSettling(limiter)) return limiter[WAIT](key, options)
  return Promise.resolve(refunding(limiter, key, options.cost, nowMs, () => limiter.wait(key, options)))
}

/** Not where another `take` stands in its place, as tracing does: that is called. */
function isSettling(limiter: object): limiter is Settling {
  if (!(TAKE in limiter)) return false
  const { take } = limiter as { take?: unknown }
  return Object.hasOwn(limiter, TAKE) || take === (Object.getPrototypeOf(limiter) as { take?: unknown } | null)?.take
}

/**
 * The decision of a limiter that only has the public verbs. It refunds what cannot have come back by itself since the call began:
 * nothing once the policy of the key is another object, nothing of a log, whose refund drops requests of others.
 */
function refunding(
  limiter: AnyLimiter,
  key: Key,
  cost: number,
  nowMs: () => number,
  decide: () => Awaitable<Decision>,
): Awaitable<Reservation<When>> {
  const sinceMs = nowMs()
  const policyNow = (): Policy | undefined => limiter.policyOf?.(key) ?? limiter.policy
  const policy = policyNow()
  return chained(decide(), (decision): Reservation<When> => {
    const { allowed, wouldDeny, source } = decision ?? {}
    if (!allowed || wouldDeny || source === 'outage' || isPermit(decision)) return uncharged(decision)
    const account: Account = {
      giveBack: (tokens) => {
        if (policy === undefined || policyNow() !== policy) return decision
        const owed = Math.min(tokens, stillOwed(policy, decision, cost, nowMs() - sinceMs))
        return owed > 0 ? (limiter.refund(key, owed) as Awaitable<Decision>) : decision
      },
      penalize: (tokens) => (limiter.penalize?.(key, tokens) as Awaitable<Decision> | undefined) ?? decision,
    }
    return new ChargedReservation(decision, true, 0, cost, account)
  })
}

/**
 * Tokens of a charge that still count, `elapsedMs` after the decision was asked for. Of a rate rounded up, as a refund is of whole tokens: so the
 * key is never more than a part of a token better off than if it had not been charged.
 */
function stillOwed({ algorithm, limit, windowMs, policies }: Policy, decision: Decision, cost: number, elapsedMs: number): number {
  const { resetAfterMs, parts = [] } = decision
  if (policies !== undefined) {
    return Math.min(...policies.map((policy, i) => (parts[i] === undefined ? 0 : stillOwed(policy, parts[i], cost, elapsedMs))))
  }
  switch (algorithm) {
    case 'token-bucket':
    case 'gcra':
      return Math.ceil(cost - (elapsedMs * limit) / windowMs)
    // The decision says when its window ends, rounded up.
    case 'fixed-window':
      return elapsedMs < resetAfterMs - 1 ? cost : 0
    case 'sliding-window':
      return elapsedMs < resetAfterMs - windowMs - 1 ? cost : 0
    default:
      return 0
  }
}
