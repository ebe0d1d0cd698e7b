import type { PolicySpec } from '../oracle/policy-spec.js'
import { windowsOf } from '../oracle/windows.js'
import type { Admission, Excess } from './admission.js'
import { firstExcess } from './rate-history.js'
import { firstPositionExcess, firstWindowExcess } from './window-history.js'

/**
 * I1 in the form of the policy's algorithm, of all-of for each of its policies. One key, and only takes; where they are permits, no
 * releases: each is in flight for its time to live.
 */
export function firstOver(spec: PolicySpec, admissions: readonly Admission[]): Excess | undefined {
  switch (spec.algorithm) {
    case 'token-bucket':
    case 'gcra':
      return firstExcess(spec, admissions)
    case 'fixed-window':
      return firstWindowExcess(spec.limit, windowsOf(spec), admissions)
    case 'sliding-window':
      return (
        firstWindowExcess(spec.limit, windowsOf({ ...spec, algorithm: 'fixed-window' }), admissions) ??
        firstPositionExcess(2 * spec.limit - 1, windowUsOf(spec), admissions)
      )
    case 'sliding-log':
      return firstPositionExcess(spec.limit, windowUsOf(spec), admissions)
    case 'concurrency':
      return firstPositionExcess(spec.limit, windowUsOf(spec), forward(admissions))
    case 'all-of':
      return spec.parts.map((part) => firstOver(part, admissions)).find((excess) => excess !== undefined)
  }
}

function windowUsOf({ windowMs }: { readonly windowMs: number }): number {
  return Math.round(windowMs * 1000)
}

/** As a permit sees time, which never runs back. */
function forward(admissions: readonly Admission[]): Admission[] {
  let latestUs = Number.NEGATIVE_INFINITY
  return admissions.map(({ atUs, cost }) => {
    latestUs = Math.max(latestUs, atUs)
    return { atUs: latestUs, cost }
  })
}
