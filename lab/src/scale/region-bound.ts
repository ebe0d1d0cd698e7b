import { FAULTY_REGIONS, SOUND_REGIONS } from './region-faults.js'
import { regionHistory } from './region-history.js'
import type { ScaleResults } from './scale-results.js'

/** As many histories are tried for a broken rule. */
const MOST_FOR_A_FAULT = 5_000

/** Random histories of regions against the bound, and the first that shows each broken rule. */
export function boundInHistories(histories: number): ScaleResults['bound'] {
  let tokens = 0
  let over = 0
  for (let seed = 1; seed <= histories; seed++) {
    const { admissions, excess } = regionHistory(seed, SOUND_REGIONS)
    tokens += admissions.length
    if (excess !== undefined) over++
  }
  const faults = FAULTY_REGIONS.map((rules) => {
    let seed = 1
    while (seed <= MOST_FOR_A_FAULT && regionHistory(seed, rules).excess === undefined) seed++
    return { name: rules.name, seed: seed <= MOST_FOR_A_FAULT ? seed : undefined }
  })
  return { histories, tokens, over, faults }
}
