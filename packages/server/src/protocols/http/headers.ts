import type { Decision, Policy } from '../../engine.js'

/** A header's name and value. Headers are data: nothing in this file touches a response. */
export type HeaderPair = readonly [name: string, value: string]

/** What stays the same for all decisions of a policy. */
interface PolicyFields {
  readonly policyHeader: HeaderPair
  /** One, or one for each of several policies at once. */
  readonly items: readonly PolicyItem[]
}

/** A single policy as the fields' lists have it. */
interface PolicyItem {
  /** The name as a structured-field string, quotes included. */
  readonly name: string
  readonly quota: number
  readonly windowS: number
  readonly secondsPerToken: number
  /** All comes back at one moment, not little by little. */
  readonly endsAtOnce: boolean
}

const fieldsByPolicy = new WeakMap<Policy, PolicyFields>()

/**
 * `RateLimit-Policy`, `RateLimit` and, for a denial that time can mend, `Retry-After`. Of several policies at once the first two
 * are lists with an item for each.
 *
 * - `q` is the burst and `w` the seconds that the burst takes to refill, rounded up, so that `r` is never above `q` and
 *   `q / w` never above the policy's rate. Where the burst refills in less than a second, both are scaled to `w=1`. Of windows
 *   and logs the burst is the limit, and refills in a window; of a window of the calendar in the longest one.
 * - `r` is what remains, `t` the seconds in which `r` tokens come back at the policy's rate (at least one token): a client that
 *   spreads `r` requests over `t` seconds is never denied, and `r / t` is never above the policy's rate either. Sliding windows
 *   and logs may give the next token after `r=0` later than that, which the denial then says. Of a fixed window `t` is when it
 *   ends; of one not begun its whole length. For what denies `t` is at most `Retry-After`.
 * - `Retry-After` is in whole seconds, rounded up, never 0. An impossible cost has none: waiting does not help.
 *
 * Source: draft-ietf-httpapi-ratelimit-headers-11, sections 3, 4, 6 and 8.5; RFC 9651 for structured fields.
 */
export function rateLimitHeaders(policy: Policy, decision: Decision): HeaderPair[] {
  const { policyHeader, items } = fieldsOf(policy)
  const { parts } = decision
  const limits = parts === undefined ? serviceLimit(items[0], decision) : parts.map((part, i) => serviceLimit(items[i], part)).join(', ')
  const headers: HeaderPair[] = [policyHeader, ['RateLimit', limits]]
  if (isDenial(decision)) headers.push(['Retry-After', String(retryAfterS(decision))])
  return headers
}

function serviceLimit(item: PolicyItem | undefined, decision: Decision): string {
  if (item === undefined) throw new RangeError('a decision of more parts than its policy has')
  const { remaining } = decision
  const windowS = effectiveWindowS(item, decision)
  return `${item.name};r=${remaining};t=${isDenial(decision) ? Math.min(windowS, retryAfterS(decision)) : windowS}`
}

function effectiveWindowS({ endsAtOnce, windowS, secondsPerToken }: PolicyItem, { remaining, resetAfterMs }: Decision): number {
  if (!endsAtOnce) return Math.ceil(Math.max(1, remaining) * secondsPerToken)
  return resetAfterMs === 0 ? windowS : Math.ceil(resetAfterMs / 1000)
}

/** Whether it is one that time can mend. */
function isDenial({ allowed, retryAfterMs }: Decision): boolean {
  return !allowed && retryAfterMs !== Number.POSITIVE_INFINITY
}

function retryAfterS({ retryAfterMs }: Decision): number {
  return Math.max(1, Math.ceil(retryAfterMs / 1000))
}

function fieldsOf(policy: Policy): PolicyFields {
  const known = fieldsByPolicy.get(policy)
  if (known !== undefined) return known
  const items = (policy.policies ?? [policy]).map(digested)
  const quotas = items.map(({ name, quota, windowS }) => `${name};q=${quota};w=${windowS}`)
  const fields: PolicyFields = { policyHeader: ['RateLimit-Policy', quotas.join(', ')], items }
  fieldsByPolicy.set(policy, fields)
  return fields
}

function digested({ algorithm, name, limit, windowMs, burst }: Policy): PolicyItem {
  const refillMs = (burst * windowMs) / limit
  return {
    name: structuredString(name),
    quota: refillMs < 1000 ? Math.floor((limit * 1000) / windowMs) : burst,
    windowS: Math.max(1, Math.ceil(refillMs / 1000)),
    secondsPerToken: windowMs / limit / 1000,
    endsAtOnce: algorithm === 'fixed-window',
  }
}

/** RFC 9651, section 3.3.3. Policy names are printable ASCII by construction, which is what such a string can hold. */
function structuredString(text: string): string {
  return `"${text.replace(/["\\]/g, '\\$&')}"`
}
