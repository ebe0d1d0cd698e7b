import { fixedWindow, type Policy, tokenBucket } from 'sluicegate'
import type { HeaderOptions } from 'sluicegate/http'
import { address, type KeyReader } from 'sluicegate/keys'
import type { MiddlewareSetting, SitePlan } from './middleware-settings.js'

/** A number of requests per window, configured for both sides. */
export interface Quota {
  readonly limit: number
  readonly windowMs: number
}

const QUOTAS: Readonly<Record<MiddlewareSetting['outcome'], Quota>> = {
  // Never ends, for either limiter.
  allow: { limit: 1_000_000_000, windowMs: 60_000 },
  // Spent by the first request. Rivals wait by a timer, which knows no more than 24.8 days.
  deny: { limit: 1, windowMs: 24 * 86_400_000 },
}

export function quotaOf({ outcome }: Pick<MiddlewareSetting, 'outcome'>): Quota {
  return QUOTAS[outcome]
}

/** Our options beside the limit, to write what a rival writes. */
export interface SameForm {
  readonly headers: NonNullable<HeaderOptions['version']> | HeaderOptions
  readonly body: 'problem' | 'text'
}

/** Our options. */
export interface OurOptions extends Partial<SameForm> {
  readonly policy: Policy
  readonly key?: KeyReader
}

/** Ours as its guide begins, a token bucket; or in windows, as rivals count, and in the form of one. */
export function ourOptions(plan: SitePlan, form: SameForm): OurOptions {
  const { limit, windowMs } = quotaOf(plan)
  const asked = { limit, window: windowMs }
  const own: OurOptions = plan.options === 'same' ? { policy: fixedWindow(asked), ...form } : { policy: tokenBucket(asked) }
  return plan.behindProxy ? { ...own, key: address({ trustedHops: 1 }) } : own
}
