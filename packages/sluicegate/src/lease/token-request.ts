/** A request for tokens, and when it was sent. */
export interface TokenRequest {
  readonly want: number
  readonly least: number
  readonly sentUs: number
}

/** How a refill ended: its tokens arrived in time to be spent, arrived late, or the backend could not be reached. */
export type RefillOutcome = 'in time' | 'late' | 'out'
