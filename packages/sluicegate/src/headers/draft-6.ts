import { differentQuotas, namelessItem } from './draft-7.js'
import type { HeaderFormat } from './header-format.js'
import { effectiveWindowS } from './quota.js'

/**
 * `RateLimit-Policy: 100;w=60`, with all policies, and `RateLimit-Limit`, `RateLimit-Remaining` and `RateLimit-Reset` of the one that binds.
 *
 * Source: draft-ietf-httpapi-ratelimit-headers-06, section 3.
 */
export const draft6: HeaderFormat = {
  item: namelessItem,
  listed: differentQuotas,
  fields: (policies, { quota }, decision) => [
    policies,
    ['RateLimit-Limit', String(quota.tokens)],
    ['RateLimit-Remaining', String(decision.remaining)],
    ['RateLimit-Reset', String(effectiveWindowS(quota, decision))],
  ],
}
