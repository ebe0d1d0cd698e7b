import type { HeaderFormat } from './header-format.js'
import { effectiveWindowMs } from './quota.js'

/**
 * What `X-RateLimit-Reset` says: a moment in Unix time, in seconds or milliseconds, or the seconds until then. There is no standard.
 * `epoch-seconds` is the default, because that is what most clients read it as: those of GitHub, and all who were served by
 * express-rate-limit. A moment is of use only to clients whose clock is right, hence `Retry-After` beside it.
 */
export type ResetMeaning = 'epoch-seconds' | 'epoch-milliseconds' | 'delta-seconds'

/** The forms of a reset that is due in `ms`. Rounded up: nobody is told to come before. */
const RESET: Readonly<Record<ResetMeaning, (ms: number, nowMs: () => number) => number>> = {
  'epoch-seconds': (ms, nowMs) => Math.ceil((nowMs() + ms) / 1000),
  'epoch-milliseconds': (ms, nowMs) => Math.ceil(nowMs() + ms),
  'delta-seconds': (ms) => Math.ceil(ms / 1000),
}

export const RESET_MEANINGS = Object.keys(RESET) as readonly ResetMeaning[]

/** `X-RateLimit-Limit`, `X-RateLimit-Remaining` and `X-RateLimit-Reset` of the policy that binds. */
export function xRateLimit(meaning: ResetMeaning): HeaderFormat {
  const reset = RESET[meaning]
  return {
    item: undefined,
    fields: (_policies, { quota }, decision, _partitionKey, nowMs) => [
      ['X-RateLimit-Limit', String(quota.tokens)],
      ['X-RateLimit-Remaining', String(decision.remaining)],
      ['X-RateLimit-Reset', String(reset(effectiveWindowMs(quota, decision), nowMs))],
    ],
  }
}
