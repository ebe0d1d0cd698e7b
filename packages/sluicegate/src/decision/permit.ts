import { type Answered, ignore, type When } from '../awaitable.js'
import type { Key } from '../key.js'
import type { AllOfPolicy, ConcurrencyPolicy, Policy } from '../policy/policy.js'
import type { After } from '../time/clock.js'
import type { Decision } from './decision.js'

/**
 * The answer of a concurrency limiter: a decision, and what it holds until it is released. Of a denied one all of these do nothing. Over a
 * store, `Permit<'later'>`, they answer with promises.
 */
export interface Permit<Time extends When = 'now'> extends Decision {
  /** Gives back what the permit holds. False when it held nothing any more, released before or expired, or its limiter was closed. */
  release(): Answered<Time, boolean>
  /**
   * Renews the permit for another `ttl` from now. False if it has expired or was released, if another caller may hold its place, or
   * when its limiter was closed. Of several policies: false when it is for one of them, and those of the others are given back.
   */
  heartbeat(): Answered<Time, boolean>
  /** {@link Permit.release}, for `using`. Over a store it does not wait; if the store cannot be reached, the permit ends after `ttl`. */
  [Symbol.dispose](): void
  /** {@link Permit.release}, for `await using`. */
  [Symbol.asyncDispose](): Promise<void>
}

/** What a take answers under a policy: a permit where concurrency is the policy or one of its parts, otherwise a decision. */
export type AnswerOf<P extends Policy, Time extends When = 'now'> = P extends ConcurrencyPolicy
  ? Permit<Time>
  : P extends AllOfPolicy<infer Parts>
    ? Extract<Parts[number], ConcurrencyPolicy> extends never
      ? Decision
      : Permit<Time>
    : Decision

/** Whether takes under this policy answer with permits. */
export function holdsPermits({ algorithm, policies = [] }: Policy): boolean {
  return algorithm === 'concurrency' || policies.some(holdsPermits)
}

export function isPermit(decision: Decision): decision is Permit {
  return 'release' in decision
}

/** The fields of a decision, as a class of permits has them: its own properties, which are shown and copied. */
export abstract class PermitDecision implements Decision {
  readonly allowed: boolean
  readonly limit: number
  readonly remaining: number
  readonly retryAfterMs: number
  readonly resetAfterMs: number
  readonly policy: string
  readonly source: Decision['source']
  declare readonly parts?: readonly Decision[]
  declare readonly wouldDeny?: true

  constructor({ allowed, limit, remaining, retryAfterMs, resetAfterMs, policy, source, parts, wouldDeny }: Decision) {
    this.allowed = allowed
    this.limit = limit
    this.remaining = remaining
    this.retryAfterMs = retryAfterMs
    this.resetAfterMs = resetAfterMs
    this.policy = policy
    this.source = source
    if (parts !== undefined) this.parts = parts
    if (wouldDeny !== undefined) this.wouldDeny = wouldDeny
  }
}

/** The permit for a decision, which takes no place. */
export type PermitOf = (decision: Decision) => Decision

/** A permit that takes no place: for its holder it is like any other, until it is released. One of a denied decision does nothing. */
export function emptyPermit(decision: Decision): Permit {
  let isHeld = decision.allowed
  const release = (): boolean => {
    const wasHeld = isHeld
    isHeld = false
    return wasHeld
  }
  const dispose = (): void => void release()
  return { ...decision, release, heartbeat: () => isHeld, [Symbol.dispose]: dispose, [Symbol.asyncDispose]: async () => dispose() }
}

/** Keeps a permit of a limiter from running out until the returned function is called: renews it each time that half of its time is over. */
export function keptPermit(
  permit: Permit,
  limiter: { readonly policy: Policy; policyOf?(key: Key): Policy },
  key: Key,
  after: After,
): () => void {
  let cancel: (() => void) | undefined
  const wait = (): void => {
    // Again each time: an update may have made it shorter.
    const ttlMs = shortestTtlMs(limiter.policyOf?.(key) ?? limiter.policy)
    if (ttlMs === Number.POSITIVE_INFINITY) return
    cancel = after(ttlMs / 2, () => {
      renew(permit)
      try {
        wait()
      } catch {
        // The limiter is closed.
      }
    })
  }
  wait()
  return () => cancel?.()
}

/** Milliseconds; `Infinity` without places. */
function shortestTtlMs({ algorithm, windowMs, policies = [] }: Policy): number {
  return algorithm === 'concurrency' ? windowMs : Math.min(Number.POSITIVE_INFINITY, ...policies.map(shortestTtlMs))
}

/** Lets a permit run for its whole time again. A limiter that is closed or out of reach says so to the next request as well. */
export function renew(permit: Permit): void {
  try {
    ignore(permit.heartbeat())
  } catch {}
}
