import type { Decision } from './decision.js'

/** Takes, waits and reservations by what became of them; each is counted once. */
export interface DecisionCounts {
  readonly allowed: number
  readonly denied: number
  /** Denied for a cost that can never pass. */
  readonly impossible: number
  /** Decided without the store, whatever the answer was. */
  readonly outage: number
}

/** Counts what one limiter decides. */
export class DecisionCounter implements DecisionCounts {
  allowed = 0
  denied = 0
  impossible = 0
  outage = 0

  count({ allowed, source, retryAfterMs }: Decision): void {
    if (source === 'outage') this.outage++
    else if (allowed) this.allowed++
    else if (retryAfterMs === Number.POSITIVE_INFINITY) this.impossible++
    else this.denied++
  }

  /** As they are now, by the name of the policy. */
  of(policy: string): Readonly<Record<string, DecisionCounts>> {
    const { allowed, denied, impossible, outage } = this
    // A name may be `__proto__`.
    return Object.fromEntries([[policy, { allowed, denied, impossible, outage }]])
  }
}
