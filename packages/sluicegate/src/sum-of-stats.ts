import type { DecisionCounts } from './decision/decision-counts.js'

/** The counters of several limiters together, and their decisions by policy. */
export function sumOfStats<Stats extends { readonly decisions: Readonly<Record<string, DecisionCounts>> }>(
  limiters: Iterable<{ stats(): Stats }>,
): Stats {
  const sum: Record<string, number> = {}
  const decisions = new Map<string, DecisionCounts>()
  for (const limiter of limiters) {
    const { decisions: own, ...counts } = limiter.stats()
    for (const [policy, made] of Object.entries(own)) decisions.set(policy, added(decisions.get(policy), made))
    for (const [name, count] of Object.entries(counts)) if (typeof count === 'number') sum[name] = (sum[name] ?? 0) + count
  }
  return { ...sum, decisions: Object.fromEntries(decisions) } as unknown as Stats
}

function added(a: DecisionCounts | undefined, b: DecisionCounts): DecisionCounts {
  if (a === undefined) return b
  return {
    allowed: a.allowed + b.allowed,
    denied: a.denied + b.denied,
    impossible: a.impossible + b.impossible,
    outage: a.outage + b.outage,
  }
}
