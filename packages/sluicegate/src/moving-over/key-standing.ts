import type { Decision } from '../decision.js'
import type { LimiterVerbs } from './limiter-verbs.js'

/** How a key stands, in the terms of libraries that count up to a limit. */
export interface KeyStanding {
  /** What may be spent at once: the limit of a window. */
  readonly burst: number
  /** What is spent, in whole tokens: more than that of a key in debt. In an outage it is what this process knows to be spent. */
  readonly spent: number
  /** Nothing is spent, and the key is not blocked. */
  readonly isAsNew: boolean
}

/** How the key stood that a decision is about. */
export function standingOf(limiter: LimiterVerbs, key: string, decision: Decision): KeyStanding {
  const { allowed, remaining, resetAfterMs, source } = decision
  const { burst } = limiter.policyOf?.(key) ?? limiter.policy
  // What is shown of a key on an allow list may be more than its burst.
  const { spent = Math.min(Math.max(burst - remaining, 0), burst) } = decision
  return { burst, spent, isAsNew: allowed && resetAfterMs === 0 && (source !== 'outage' || spent === 0) }
}
