import { type RuleLimit, UNITS } from 'sluicegate-config/envoy/rule.js'
import type { Decision, Policy } from '../engine/engine.js'
import type { CurrentLimit, DescriptorStatus } from './limit-request.js'
import type { LimitHeaderNames } from './limit-settings.js'

const MAX_UINT32 = 0xffff_ffff

export const NO_LIMIT: DescriptorStatus = { over: false, limit: undefined, remaining: 0, resetS: 0 }
export const UNLIMITED: DescriptorStatus = { over: false, limit: undefined, remaining: MAX_UINT32, resetS: 0 }

/**
 * What a response says of a descriptor with a limit. Without `decision` the limit is 0.
 *
 * @param floor tokens that are left in any case, which the limit does not have.
 */
export function descriptorStatus(
  limit: RuleLimit,
  policy: Policy | undefined,
  decision: Decision | undefined,
  over: boolean,
  nowMs: number,
  { isTiered, floor }: { readonly isTiered: boolean; readonly floor: number },
): DescriptorStatus {
  const current = currentLimit(limit, isTiered ? policy : undefined)
  const windowEndMs = windowLeftMs(limit, policy, nowMs)
  if (decision === undefined) return { over, limit: current, remaining: 0, resetS: Math.ceil(windowEndMs / 1_000) }
  const { allowed, remaining, retryAfterMs, resetAfterMs } = decision
  const waitMs = allowed || !Number.isFinite(retryAfterMs) ? resetAfterMs : retryAfterMs
  return {
    over,
    limit: current,
    remaining: Math.min(Math.floor(Math.max(0, remaining - floor) / limit.cost), MAX_UINT32),
    resetS: Math.ceil((waitMs > 0 ? waitMs : windowEndMs) / 1_000),
  }
}

/** The limit of the rule, or of the key's tier. */
function currentLimit({ requestsPerUnit, unit, name }: RuleLimit, tier: Policy | undefined): CurrentLimit {
  if (tier === undefined) return { requestsPerUnit, unit: unit === undefined ? 0 : UNITS[unit].number, name }
  const number = Object.values(UNITS).find(({ windowMs }) => windowMs === tier.windowMs)?.number
  return { requestsPerUnit: tier.limit, unit: number ?? 0, name }
}

/** The time to the end of an aligned window, also for a key that nothing was taken from; 0 for buckets and windows of the calendar. */
function windowLeftMs({ unit }: RuleLimit, policy: Policy | undefined, nowMs: number): number {
  if (policy !== undefined && (policy.algorithm !== 'fixed-window' || policy.calendar !== undefined)) return 0
  const windowMs = policy?.windowMs ?? (unit === undefined ? 1_000 : UNITS[unit].windowMs)
  return windowMs - (nowMs % windowMs)
}

/** Headers of the descriptor that is nearest to its limit; of those that are over it the last one, and quotas after all others. */
export function limitHeaders(
  names: LimitHeaderNames,
  statuses: readonly DescriptorStatus[],
  isQuota: (place: number) => boolean,
): (readonly [string, string])[] {
  let nearest: DescriptorStatus | undefined
  let remaining = Number.POSITIVE_INFINITY
  for (const [i, status] of statuses.entries()) {
    if (status.limit === undefined) continue
    const isDenying = status.over && !isQuota(i)
    if (!isDenying && status.remaining >= remaining) continue
    nearest = status
    remaining = isDenying ? 0 : status.remaining
  }
  if (nearest?.limit === undefined) return []
  return [
    [names.limit, String(nearest.limit.requestsPerUnit)],
    [names.remaining, String(nearest.remaining)],
    [names.reset, String(nearest.resetS)],
  ]
}
