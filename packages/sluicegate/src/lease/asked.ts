/** What is asked of the authority, and when. */
export interface Asked {
  readonly want: number
  readonly least: number
  readonly sentUs: number
}

/** Whether the authority answered, and in time for what it gave to be spent. */
export type Asking = 'in time' | 'late' | 'out'
