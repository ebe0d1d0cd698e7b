/** A permit: when it was given, and when it came back, by release or by expiry. */
export interface Flight {
  readonly fromUs: number
  readonly untilUs: number
  readonly cost: number
}

/** A moment at which too many were in flight. */
export interface Crowding {
  readonly atUs: number
  readonly inFlight: number
}

/** Looks for a moment at which more than `limit` was in flight; one that ends then is not. */
export function firstCrowding(limit: number, flights: readonly Flight[]): Crowding | undefined {
  for (const { fromUs: atUs } of [...flights].sort((a, b) => a.fromUs - b.fromUs)) {
    const inFlight = flights.reduce((sum, { fromUs, untilUs, cost }) => (fromUs <= atUs && untilUs > atUs ? sum + cost : sum), 0)
    if (inFlight > limit) return { atUs, inFlight }
  }
  return undefined
}
