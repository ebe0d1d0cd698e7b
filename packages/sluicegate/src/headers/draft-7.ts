import type { Digest, HeaderFormat } from './header-format.js'
import { effectiveWindowS, type Quota } from './quota.js'

/** `100;w=60`. Source: draft-ietf-httpapi-ratelimit-headers-07, section 2.1. */
export function namelessItem({ tokens, windowS }: Quota): string {
  return `${tokens};w=${windowS}`
}

/** Two policies must not have the same number of tokens there; the longer window binds. Source: the same, section 3.5. */
export function differentQuotas(digests: readonly Digest[]): readonly Digest[] {
  return digests.filter(({ quota: { tokens, windowS } }, i) =>
    digests.every(({ quota: other }, j) => other.tokens !== tokens || other.windowS < windowS || (other.windowS === windowS && i <= j)),
  )
}

/**
 * `RateLimit-Policy: 100;w=60`, with all policies, and `RateLimit: limit=100, remaining=50, reset=30` of the one that binds.
 *
 * Source: draft-ietf-httpapi-ratelimit-headers-07, sections 3 and 4.
 */
export const draft7: HeaderFormat = {
  item: namelessItem,
  listed: differentQuotas,
  fields: (policies, { quota }, decision) => [
    policies,
    ['RateLimit', `limit=${quota.tokens}, remaining=${decision.remaining}, reset=${effectiveWindowS(quota, decision)}`],
  ],
}
