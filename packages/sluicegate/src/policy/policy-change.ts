import { PolicyError } from '../errors.js'
import type { Policy } from './policy.js'

/** @throws {PolicyError} `ALGORITHM_CHANGE` */
export function checkChange(before: Policy, next: Policy): void {
  if (next.algorithm !== before.algorithm) {
    const mend = `must stay ${before.algorithm}: make a new limiter to change the algorithm`
    throw new PolicyError('ALGORITHM_CHANGE', 'policy', next.algorithm, mend)
  }
  if (next.slotBytes !== before.slotBytes) {
    const mend = `must stay ${before.slotBytes}: make a new limiter to change it`
    throw new PolicyError('ALGORITHM_CHANGE', 'slotBytes', next.slotBytes, mend)
  }
}
