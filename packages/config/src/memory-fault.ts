import { createLimiter, PolicyError } from 'sluicegate'
import type { PolicyConfig } from './policy-config.js'

/** Algorithms whose keys may need more memory than there is: a log takes slots by its limit, the parts of an all-of add up. */
const LARGE: ReadonlySet<string> = new Set(['sliding-log', 'all-of'])

/**
 * Why no machine can hold the keys of a policy; undefined when one can. Creates a limiter, which touches almost none of the memory that
 * it reserves.
 */
export function memoryFault({ policy, maxKeys, onFull }: PolicyConfig): string | undefined {
  if (!LARGE.has(policy.algorithm)) return undefined
  try {
    createLimiter(policy, { onFull, ...(maxKeys !== undefined && { maxKeys }) }).close()
    return undefined
  } catch (error) {
    // Only this machine lacks the memory: `serve` reports that on the machine that serves the file.
    if (error instanceof RangeError) return undefined
    if (!(error instanceof PolicyError) || error.option !== 'maxKeys') throw error
    return maxKeys === undefined
      ? `is needed here: as many keys as usual take ${error.value}, and 4 GiB is the most`
      : `keys up to this number take ${error.value}, and 4 GiB is the most: lower it, or the limit of a sliding-log`
  }
}
