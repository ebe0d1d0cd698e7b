import type { Decision } from './decision.js'
import type { Permit } from './permit.js'
import type { Policy } from './policy/policy.js'

/** Whether takes under this policy answer with permits. */
export function holdsPermits({ algorithm, policies = [] }: Policy): boolean {
  return algorithm === 'concurrency' || policies.some(holdsPermits)
}

export function isPermit(decision: Decision): decision is Permit {
  return 'release' in decision
}

/** A permit that takes no place: for its holder it is like any other, until it is released. One of a denied decision does nothing. */
export function emptyPermit(decision: Decision): Permit {
  let isHeld = decision.allowed
  const release = (): boolean => {
    const wasHeld = isHeld
    isHeld = false
    return wasHeld
  }
  return { ...decision, release, heartbeat: () => isHeld, [Symbol.dispose]: () => void release() }
}
