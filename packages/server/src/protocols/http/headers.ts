import type { Decision, Policy } from '../../engine.js'

/** A header's name and value. Headers are data: nothing in this file touches a response. */
export type HeaderPair = readonly [name: string, value: string]

/** What stays the same for all decisions of a policy. */
interface PolicyFields {
  /** The name as a structured-field string, quotes included. */
  readonly name: string
  readonly policyHeader: HeaderPair
  readonly secondsPerToken: number
}

const fieldsByPolicy = new WeakMap<Policy, PolicyFields>()

/**
 * `RateLimit-Policy`, `RateLimit` and, for a denial that time can mend, `Retry-After`.
 *
 * - `q` is the burst and `w` the seconds that the burst takes to refill, rounded up, so that `r` is never above `q` and
 *   `q / w` never above the policy's rate. Where the burst refills in less than a second, both are scaled to `w=1`.
 * - `r` is what remains, `t` the seconds in which `r` tokens come back (at least one token): a client that spreads `r`
 *   requests over `t` seconds is never denied, and `r / t` is never above the policy's rate either. On a denial `t` is
 *   at most `Retry-After`.
 * - `Retry-After` is in whole seconds, rounded up, never 0. An impossible cost has none: waiting does not help.
 *
 * Source: draft-ietf-httpapi-ratelimit-headers-11, sections 3, 4, 6 and 8.5; RFC 9651 for structured fields.
 */
export function rateLimitHeaders(policy: Policy, decision: Decision): HeaderPair[] {
  const { name, policyHeader, secondsPerToken } = fieldsOf(policy)
  const { remaining, retryAfterMs } = decision
  const windowS = Math.ceil(Math.max(1, remaining) * secondsPerToken)
  const limitHeader = (t: number): HeaderPair => ['RateLimit', `${name};r=${remaining};t=${t}`]
  if (decision.allowed || retryAfterMs === Number.POSITIVE_INFINITY) return [policyHeader, limitHeader(windowS)]

  const retryAfterS = Math.max(1, Math.ceil(retryAfterMs / 1000))
  return [policyHeader, limitHeader(Math.min(windowS, retryAfterS)), ['Retry-After', String(retryAfterS)]]
}

function fieldsOf(policy: Policy): PolicyFields {
  const known = fieldsByPolicy.get(policy)
  if (known !== undefined) return known
  const fields = digested(policy)
  fieldsByPolicy.set(policy, fields)
  return fields
}

function digested({ name, limit, windowMs, burst }: Policy): PolicyFields {
  const quotedName = structuredString(name)
  const refillMs = (burst * windowMs) / limit
  const quota = refillMs < 1000 ? Math.floor((limit * 1000) / windowMs) : burst
  const windowS = Math.max(1, Math.ceil(refillMs / 1000))
  return {
    name: quotedName,
    policyHeader: ['RateLimit-Policy', `${quotedName};q=${quota};w=${windowS}`],
    secondsPerToken: windowMs / limit / 1000,
  }
}

/** RFC 9651, section 3.3.3. Policy names are printable ASCII by construction, which is what such a string can hold. */
function structuredString(text: string): string {
  return `"${text.replace(/["\\]/g, '\\$&')}"`
}
