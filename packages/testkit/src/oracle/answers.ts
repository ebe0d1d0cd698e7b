import type { OracleDecision } from './oracle.js'

/** Makes answers as tests of oracles write them; of a policy with another limit only where the last argument says so. */
export function answersOf(usual: number) {
  return (allowed: boolean, remaining: number, retryAfterMs: number, resetAfterMs: number, limit = usual): OracleDecision => ({
    allowed,
    limit,
    remaining,
    retryAfterMs,
    resetAfterMs,
  })
}
