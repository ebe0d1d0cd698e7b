import type { DescriptorStatus } from './limit-request.js'
import type { LimitHeaderNames } from './limit-settings.js'

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
