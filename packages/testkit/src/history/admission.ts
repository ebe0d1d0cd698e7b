/** One admitted request: the clock's reading when it passed, in whole microseconds, and its cost. */
export interface Admission {
  readonly atUs: number
  readonly cost: number
}

/** The interval that broke the budget: from one admission to another, both included. */
export interface Excess {
  readonly fromUs: number
  readonly toUs: number
  readonly admitted: number
  /** In whole tokens, rounded down. */
  readonly budget: number
}
