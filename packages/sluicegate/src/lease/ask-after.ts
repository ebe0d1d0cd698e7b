/** Shares of the horizon: how long before more tokens are free a process asks again that got some, and one that got none. */
const AHEAD = [0.1, 0.4] as const
const AHEAD_OF_NONE = [0.2, 1] as const

/**
 * When to ask again after a short answer. A process that got tokens asks when most of another horizon is free; one that got none asks
 * earlier. The time is random: each process gets what became free since the one before it asked, so a fixed order would give unequal shares.
 */
export function askAfterUs(untilFreeUs: number, granted: number, horizonUs: number, random = Math.random): number {
  const [least, most] = granted > 0 ? AHEAD : AHEAD_OF_NONE
  return Math.max(0, untilFreeUs - (least + (most - least) * random()) * horizonUs)
}
