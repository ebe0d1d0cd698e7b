import { Engine, PolicyError } from '../engine.js'
import type { PolicyConfig } from './config.js'

/** Whose keys may need more memory than there is: logs take slots by their limit, parts are added up. */
const LARGE: ReadonlySet<string> = new Set(['sliding-log', 'all-of'])

/**
 * Why the keys of a policy cannot be held, whatever the machine; undefined when they can. The engine is asked, which touches next to
 * nothing of the memory that it reserves.
 */
export function memoryFault(config: PolicyConfig): string | undefined {
  if (!LARGE.has(config.policy.algorithm)) return undefined
  try {
    new Engine([config]).close()
    return undefined
  } catch (error) {
    // This machine has not got it: that is for whoever serves the file to find out.
    if (error instanceof RangeError) return undefined
    if (!(error instanceof PolicyError) || error.option !== 'maxKeys') throw error
    return (config.growTo ?? config.maxKeys) === undefined
      ? `is needed here: as many keys as usual take ${error.value}, and 4 GiB is the most`
      : `so many keys take ${error.value}, and 4 GiB is the most: lower it, or the limit of a sliding-log`
  }
}
