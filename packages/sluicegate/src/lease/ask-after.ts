/** Parts of the horizon: so much before there are more tokens comes back who got some, and who got none. */
const AHEAD = [0.1, 0.4] as const
const AHEAD_OF_NONE = [0.2, 1] as const

/**
 * Who got something comes back when most of another horizon can be had; who got nothing before that, for a smaller part of it. At random:
 * as each gets what became free since the one before it asked, those who came in the same order all the time would get unequal shares.
 */
export function askAfterUs(untilFreeUs: number, granted: number, horizonUs: number, random = Math.random): number {
  const [least, most] = granted > 0 ? AHEAD : AHEAD_OF_NONE
  return Math.max(0, untilFreeUs - (least + (most - least) * random()) * horizonUs)
}
