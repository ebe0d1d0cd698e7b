/** A request for tokens, and when it was sent. */
export interface Asked {
  readonly want: number
  readonly least: number
  readonly sentUs: number
}

/** How a refill ended: its tokens came in time to be spent, came late, or the backend could not be reached. */
export type Asking = 'in time' | 'late' | 'out'
