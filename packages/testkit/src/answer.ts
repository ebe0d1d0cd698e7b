import type { OracleDecision } from './oracle/oracle.js'

/** What a step of a sequence answers, as far as it can be compared; of a booking its wait as `retryAfterMs`, of a permit's verbs `allowed` alone. */
export type Answer = Partial<OracleDecision>

export function bookingAnswer({
  allowed,
  waitMs,
  decision,
}: {
  readonly allowed: boolean
  readonly waitMs: number
  readonly decision: OracleDecision
}): Answer {
  const { limit, remaining, resetAfterMs } = decision
  return { allowed, limit, remaining, retryAfterMs: waitMs, resetAfterMs }
}

/** The thing that a step means by its number, counted round; undefined while there is none. */
export function numbered<Thing>(things: readonly Thing[], number: number): Thing | undefined {
  return things.length === 0 ? undefined : things[number % things.length]
}
