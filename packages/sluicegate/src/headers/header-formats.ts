import type { Decision } from '../decision.js'
import type { HeaderPair } from './header-pair.js'
import { effectiveWindowMs, effectiveWindowS, type Quota, type QuotaUnit } from './quota.js'

/** A quota with what a format makes of it once. */
export interface Digest {
  readonly quota: Quota
  /** The unit that was asked for. */
  readonly unit: QuotaUnit | undefined
  /** Its item in `RateLimit-Policy`. */
  readonly item: string
  /** The whole `RateLimit-Policy` where it stands alone. */
  readonly alone: HeaderPair
  /** What each of its service limits begins with. */
  readonly prefix: string
}

/** A decision under a single policy. */
export interface Served {
  readonly digest: Digest
  readonly decision: Decision
  /** `pk` as it is written, undefined when it is not told. */
  readonly partitionKey: string | undefined
}

/** How one version writes. */
export interface HeaderFormat {
  /** The item of a quota in `RateLimit-Policy`; undefined where there is no such field. */
  readonly item: ((quota: Quota) => string) | undefined
  /** What the service limits of a policy begin with, where there is anything to prepare. */
  readonly prefix?: (quota: Quota) => string
  /** The quotas that may stand together in one `RateLimit-Policy`; all of them where it is not given. */
  readonly listed?: (digests: readonly Digest[]) => readonly Digest[]
  /**
   * All fields of one decision: nearly every response has only that.
   *
   * @param policies the field `RateLimit-Policy`, first of those that are returned, where there is such a field.
   * @param partitionKey as {@link Served} has it.
   * @param nowMs reads Unix time, for those that tell it.
   */
  fields(policies: HeaderPair, digest: Digest, decision: Decision, partitionKey: string | undefined, nowMs: () => number): HeaderPair[]
  /** All fields of several decisions; where it is not given, those of the one that binds. */
  readonly several?: (policies: HeaderPair, served: readonly Served[]) => HeaderPair[]
}

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
