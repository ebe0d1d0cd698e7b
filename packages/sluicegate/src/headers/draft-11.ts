import type { Decision } from '../decision.js'
import type { Digest, HeaderFormat } from './header-format.js'
import { effectiveWindowS, type Quota } from './quota.js'

/**
 * `RateLimit-Policy: "burst";q=100;w=60` and `RateLimit: "burst";r=50;t=30`, with an item for each policy. Of concurrency neither has a
 * window. `pk` stands in `RateLimit` alone, so that the other field stays the same for all.
 *
 * Source: draft-ietf-httpapi-ratelimit-headers-11, sections 3 and 4, and -08 to -10, of the same form; RFC 9651.
 */
export const draft11: HeaderFormat = {
  item({ name, tokens, windowS, unit, isConcurrency }) {
    return `${structuredString(name)};q=${tokens}${unit === undefined ? '' : `;qu="${unit}"`}${isConcurrency ? '' : `;w=${windowS}`}`
  },
  prefix: ({ name }: Quota) => `${structuredString(name)};r=`,
  fields: (policies, digest, decision, partitionKey) => [policies, ['RateLimit', serviceLimit(digest, decision, partitionKey)]],
  several(policies, served) {
    const limits = served.map(({ digest, decision, partitionKey }) => serviceLimit(digest, decision, partitionKey))
    return [policies, ['RateLimit', limits.join(', ')]]
  },
}

function serviceLimit({ prefix, quota }: Digest, decision: Decision, partitionKey: string | undefined): string {
  const field = prefix + decision.remaining
  const timed = quota.isConcurrency ? field : field + windowParameter(effectiveWindowS(quota, decision))
  return partitionKey === undefined ? timed : `${timed};pk=${partitionKey}`
}

const parameters = Array.from({ length: 601 }, (_, seconds) => `;t=${seconds}`)

/** `;t=60`: kept for times that most responses tell, as this runs once a request. */
function windowParameter(seconds: number): string {
  return seconds < parameters.length ? (parameters[seconds] as string) : `;t=${seconds}`
}

/** RFC 9651, section 3.3.3. Policy names are printable ASCII by construction, which is what such a string can hold. */
function structuredString(text: string): string {
  return `"${text.replace(/["\\]/g, '\\$&')}"`
}
