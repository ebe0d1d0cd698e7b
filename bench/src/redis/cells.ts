import { CALLERS, type Cell, MOST_CALLERS, SHAPES } from './cell.js'
import { FLEET_CONTENDER_NAMES, type FleetContenderName } from './contenders.js'
import type { Topology } from './place.js'

/** Questions a second where they come at a steady pace: fewer than most contenders can answer, and 39 a second for each of 256 keys. */
export const PACE_PER_S = 10_000

/** What is measured side by side: cells that differ only in who decides. */
export function cellGroups(
  topology: Topology,
  contenders: readonly FleetContenderName[] = FLEET_CONTENDER_NAMES,
): readonly (readonly Cell[])[] {
  return SHAPES.flatMap((shape) => {
    const closed = CALLERS.map((callers) => ({ topology, shape, callers, pace: 0 }))
    const paced = { topology, shape, callers: MOST_CALLERS, pace: PACE_PER_S }
    return [...closed, paced].map((setting) => contenders.map((contender) => ({ contender, ...setting })))
  })
}
