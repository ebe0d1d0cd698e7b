import type { Decision } from '../decision/decision.js'
import type { HeaderPair } from './header.js'
import { effectiveWindowMs, effectiveWindowS, type Quota, type QuotaUnit, sayable } from './quota.js'

/** A quota with its parts in one format, made once. */
export interface Digest {
  readonly quota: Quota
  /** As given in the options. */
  readonly unit: QuotaUnit | undefined
  /** Its item in `RateLimit-Policy`. */
  readonly item: string
  /** The whole `RateLimit-Policy` of this policy alone. */
  readonly alone: HeaderPair
  /** The beginning of each of its items in `RateLimit`. */
  readonly prefix: string
}

/** A decision under a single policy. */
export interface Served {
  readonly digest: Digest
  readonly decision: Decision
  /** The value of `pk`; undefined where it is not written. */
  readonly partitionKey: string | undefined
}

/** The syntax of one version. */
export interface HeaderFormat {
  /** The item of a quota in `RateLimit-Policy`; undefined for versions without this field. */
  readonly item: ((quota: Quota) => string) | undefined
  /** The constant beginning of an item in `RateLimit`, if there is one. */
  readonly prefix?: (quota: Quota) => string
  /** The quotas that may be listed together in one `RateLimit-Policy`; default all. */
  readonly listed?: (digests: readonly Digest[]) => readonly Digest[]
  /**
   * The fields of one decision, which is all that nearly every response has.
   *
   * @param policies the field `RateLimit-Policy`, which comes first in versions that have it.
   * @param partitionKey as in {@link Served}.
   * @param nowMs Unix time, for versions whose reset is a moment.
   */
  fields(policies: HeaderPair, digest: Digest, decision: Decision, partitionKey: string | undefined, nowMs: () => number): HeaderPair[]
  /** The fields of several decisions; default those of the binding one. */
  readonly several?: (policies: HeaderPair, served: readonly Served[]) => HeaderPair[]
}

/**
 * `RateLimit-Policy: "burst";q=100;w=60` and `RateLimit: "burst";r=50;t=30`, with an item for each policy. For `concurrency` neither has a
 * window. `pk` is only in `RateLimit`, so that the other field is the same for all clients.
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
  const field = prefix + sayable(decision.remaining)
  const timed = quota.isConcurrency ? field : field + windowParameter(effectiveWindowS(quota, decision))
  return partitionKey === undefined ? timed : `${timed};pk=${partitionKey}`
}

const parameters = Array.from({ length: 601 }, (_, seconds) => `;t=${seconds}`)

/** `;t=60`, prepared for common times, as this runs for each request. */
function windowParameter(seconds: number): string {
  return seconds < parameters.length ? (parameters[seconds] as string) : `;t=${seconds}`
}

/** RFC 9651, section 3.3.3. Policy names are printable ASCII, as such a string has to be. */
export function structuredString(text: string): string {
  return `"${text.replace(/["\\]/g, '\\$&')}"`
}

/** `100;w=60`. Source: draft-ietf-httpapi-ratelimit-headers-07, section 2.1. */
function namelessItem({ tokens, windowS }: Quota): string {
  return `${tokens};w=${windowS}`
}

/** Two listed policies must not have the same number of tokens; the longer window binds. Source: the same, section 3.5. */
function differentQuotas(digests: readonly Digest[]): readonly Digest[] {
  return digests.filter(({ quota: { tokens, windowS } }, i) =>
    digests.every(({ quota: other }, j) => other.tokens !== tokens || other.windowS < windowS || (other.windowS === windowS && i <= j)),
  )
}

/**
 * `RateLimit-Policy: 100;w=60`, with all policies, and `RateLimit: limit=100, remaining=50, reset=30` of the binding one.
 *
 * Source: draft-ietf-httpapi-ratelimit-headers-07, sections 3 and 4.
 */
export const draft7: HeaderFormat = {
  item: namelessItem,
  listed: differentQuotas,
  fields: (policies, { quota }, decision) => [
    policies,
    ['RateLimit', `limit=${quota.tokens}, remaining=${sayable(decision.remaining)}, reset=${effectiveWindowS(quota, decision)}`],
  ],
}

/**
 * `RateLimit-Policy: 100;w=60`, with all policies, and `RateLimit-Limit`, `RateLimit-Remaining` and `RateLimit-Reset` of the binding one.
 *
 * Source: draft-ietf-httpapi-ratelimit-headers-06, section 3.
 */
export const draft6: HeaderFormat = {
  item: namelessItem,
  listed: differentQuotas,
  fields: (policies, { quota }, decision) => [
    policies,
    ['RateLimit-Limit', String(quota.tokens)],
    ['RateLimit-Remaining', String(sayable(decision.remaining))],
    ['RateLimit-Reset', String(effectiveWindowS(quota, decision))],
  ],
}

/**
 * The meaning of `X-RateLimit-Reset`: a moment in Unix time, in seconds or milliseconds, or the seconds until then. There is no standard.
 * `epoch-seconds` is the default, because most clients read it so: those of GitHub, and of servers with express-rate-limit. A moment is
 * useful only to clients with a correct clock, hence `Retry-After` beside it.
 */
export type ResetMeaning = 'epoch-seconds' | 'epoch-milliseconds' | 'delta-seconds'

/** The value of a reset that is due in `ms`, rounded up, so that no client returns too early. */
const RESET: Readonly<Record<ResetMeaning, (ms: number, nowMs: () => number) => number>> = {
  'epoch-seconds': (ms, nowMs) => Math.ceil((nowMs() + ms) / 1000),
  'epoch-milliseconds': (ms, nowMs) => Math.ceil(nowMs() + ms),
  'delta-seconds': (ms) => Math.ceil(ms / 1000),
}

export const RESET_MEANINGS = Object.keys(RESET) as readonly ResetMeaning[]

/** `X-RateLimit-Limit`, `X-RateLimit-Remaining` and `X-RateLimit-Reset` of the binding policy. */
export function xRateLimit(meaning: ResetMeaning): HeaderFormat {
  const reset = RESET[meaning]
  return {
    item: undefined,
    fields: (_policies, { quota }, decision, _partitionKey, nowMs) => [
      ['X-RateLimit-Limit', String(quota.tokens)],
      ['X-RateLimit-Remaining', String(sayable(decision.remaining))],
      ['X-RateLimit-Reset', String(reset(effectiveWindowMs(quota, decision), nowMs))],
    ],
  }
}
