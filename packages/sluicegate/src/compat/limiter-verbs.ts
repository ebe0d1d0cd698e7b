import type { Awaitable } from '../awaitable.js'
import type { Decision } from '../decision/decision.js'
import { PolicyError } from '../errors.js'
import type { Key } from '../limiter.js'
import type { Policy } from '../policy/policy.js'
import { checkedName } from '../policy/policy-options.js'
import type { Duration } from '../time/duration.js'

/** The methods of a limiter that the compatible interfaces call; in-memory and shared limiters have all of them. */
export interface LimiterVerbs {
  readonly policy: Policy
  /** The policy in force for a key, where keys may have a policy of their own. */
  policyOf?(key: Key): Policy
  take(key: Key, cost?: number): Awaitable<Decision>
  peek(key: Key, cost?: number): Awaitable<Decision>
  refund(key: Key, tokens: number): Awaitable<Decision>
  penalize(key: Key, tokens: number): Awaitable<Decision>
  block(key: Key, duration: Duration): Awaitable<Decision>
  reset(key: Key): Awaitable<Decision>
  close(): void
}

/** Makes the limiter of a policy that was read from another library's options. */
export type MakeLimiter = (policy: Policy) => LimiterVerbs

const EXAMPLE = '(policy) => createLimiter(policy, { store: redis(client) })'

/**
 * The limiter that `create` makes of this policy; one of another policy is refused, as the options would be ignored.
 *
 * @throws {PolicyError} `OPTION_INVALID`
 */
export function madeLimiter(create: MakeLimiter, policy: Policy): LimiterVerbs {
  if (typeof create !== 'function') {
    throw new PolicyError('OPTION_INVALID', 'create', create, `must be a function of the policy, such as ${EXAMPLE}`)
  }
  const limiter = create(policy)
  const own = typeof limiter?.take === 'function' ? limiter.policy : undefined
  const { algorithm, limit, windowMs } = policy
  if (own?.algorithm === algorithm && own.limit === limit && own.windowMs === windowMs) return limiter
  throw new PolicyError('OPTION_INVALID', 'create', create, `must make a limiter of the policy that it is given, as ${EXAMPLE} does`)
}

/** The state of a key, in the terms of libraries that count up to a limit. */
export interface KeyState {
  /** Tokens that may be spent at once: the limit of a window. */
  readonly burst: number
  /** Whole tokens spent; above the burst for a key in debt. In an outage: those that this process knows of. */
  readonly spent: number
  /** Nothing is spent, and the key is not blocked. */
  readonly isAsNew: boolean
}

/** The state of a key at the time of a decision. */
export function stateOf(limiter: LimiterVerbs, key: string, decision: Decision): KeyState {
  const { allowed, remaining, resetAfterMs, source } = decision
  const { burst } = limiter.policyOf?.(key) ?? limiter.policy
  // A key on an allow list may have more remaining than its burst.
  const { spent = Math.min(Math.max(burst - remaining, 0), burst) } = decision
  return { burst, spent, isAsNew: allowed && resetAfterMs === 0 && (source !== 'outage' || spent === 0) }
}

/** An option that becomes the name of a policy. @throws {PolicyError} `NAME_INVALID`, with the name of the option. */
export function checkedPolicyName(option: string, name: string): string {
  try {
    return checkedName(name, '')
  } catch {
    throw new PolicyError('NAME_INVALID', option, name, 'must be 1 to 120 printable ASCII characters: it is in the name of the policy')
  }
}
