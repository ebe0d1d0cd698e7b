import type { Policy } from 'sluicegate'

const MS_PER_UNIT = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['m', 60_000],
  ['s', 1_000],
] as const

/** A policy for people: `token-bucket, 100 per 1m, burst 200`, or `all-of, 2 policies`, which have texts of their own. */
export function describePolicy(policy: Policy): string {
  const { algorithm, limit, burst, policies } = policy
  if (policies !== undefined) return `${algorithm}, ${policies.length} ${policies.length === 1 ? 'policy' : 'policies'}`
  const rate = `${algorithm}, ${limit} per ${windowText(policy)}`
  // Elsewhere the burst is the limit by nature.
  return algorithm === 'token-bucket' || algorithm === 'gcra' ? `${rate}, burst ${burst}` : rate
}

function windowText({ windowMs, calendar }: Policy): string {
  if (calendar !== undefined) return `${calendar.unit} in ${calendar.timeZone}`
  const [unit, size] = MS_PER_UNIT.find(([, unitMs]) => windowMs % unitMs === 0) ?? ['ms', 1]
  return `${windowMs / size}${unit}`
}
