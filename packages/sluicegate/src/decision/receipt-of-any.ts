import { type Awaitable, chained } from '../awaitable.js'
import type { Key, WaitOptions } from '../limiter.js'
import type { Policy } from '../policy/policy.js'
import type { Decision } from './decision.js'
import { isPermit } from './permit.js'
import { emptyReceipt, type Receipt, type Receipting, TAKE, WAIT } from './receipt.js'

/** Any limiter: receipts of one that this library did not make refund by its own verbs. */
export interface ReceiptSource {
  readonly policy?: Policy
  policyOf?(key: Key): Policy
  take?(key: Key, cost?: number): Awaitable<Decision>
  refund(key: Key, tokens: number): unknown
  penalize?(key: Key, tokens: number): unknown
}

/** A take with its receipt. @param nowMs measures how long ago a limiter of the user's charged. */
export function takeOf(
  limiter: ReceiptSource & { take(key: Key, cost?: number): Awaitable<Decision> },
  key: Key,
  cost: number,
  nowMs: () => number,
): Awaitable<Receipt> {
  if (isReceipting(limiter)) return limiter[TAKE](key, cost)
  return refundingReceipt(limiter, key, cost, nowMs, () => limiter.take(key, cost))
}

/** A wait with its receipt. */
export function waitOf(
  limiter: ReceiptSource & { wait(key: Key, options?: WaitOptions): Promise<Decision> },
  key: Key,
  options: WaitOptions & { readonly cost: number },
  nowMs: () => number,
): Promise<Receipt> {
  if (isReceipting(limiter)) return limiter[WAIT](key, options)
  return Promise.resolve(refundingReceipt(limiter, key, options.cost, nowMs, () => limiter.wait(key, options)))
}

/** Not where another `take` stands in its place, as tracing does: that is called. */
function isReceipting(limiter: object): limiter is Receipting {
  if (!(TAKE in limiter)) return false
  const { take } = limiter as { take?: unknown }
  return Object.hasOwn(limiter, TAKE) || take === (Object.getPrototypeOf(limiter) as { take?: unknown } | null)?.take
}

/**
 * The receipt of a decision by a limiter that only has the public verbs. It refunds what cannot have come back by itself since the call began:
 * nothing once the policy of the key is another object, nothing of a log, whose refund drops requests of others.
 */
function refundingReceipt(
  limiter: ReceiptSource,
  key: Key,
  cost: number,
  nowMs: () => number,
  decide: () => Awaitable<Decision>,
): Awaitable<Receipt> {
  const sinceMs = nowMs()
  const policyNow = (): Policy | undefined => limiter.policyOf?.(key) ?? limiter.policy
  const policy = policyNow()
  return chained(decide(), (decision): Receipt => {
    const { allowed, wouldDeny, source } = decision ?? {}
    if (!allowed || wouldDeny || source === 'outage' || isPermit(decision)) return emptyReceipt(decision)
    let isOver = false
    const settle = (actualCost: number): unknown => {
      if (isOver) return undefined
      isOver = true
      if (actualCost > cost) return limiter.penalize?.(key, actualCost - cost)
      if (policy === undefined || policyNow() !== policy) return undefined
      const tokens = Math.min(cost - actualCost, stillOwed(policy, decision, cost, nowMs() - sinceMs))
      return tokens > 0 ? limiter.refund(key, tokens) : undefined
    }
    return { decision, settle, cancel: () => settle(0) }
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
