import { ignore } from './awaitable.js'
import type { Key } from './limiter.js'
import type { Permit } from './permit.js'
import type { Policy } from './policy/policy.js'

/** Calls `fn` once, `ms` from now; the returned function cancels it. */
export type After = (ms: number, fn: () => void) => () => void

/** Who gave a permit. */
interface PermitGiver {
  readonly policy: Policy
  policyOf?(key: Key): Policy
}

/** Keeps a permit from running out until the returned function is called: renews it each time that half of its time is over. */
export function keptPermit(permit: Permit, limiter: PermitGiver, key: Key, after: After): () => void {
  let cancel: (() => void) | undefined
  const wait = (): void => {
    // Anew each time: an update may have made it shorter.
    const ttlMs = shortestTtlMs(limiter.policyOf?.(key) ?? limiter.policy)
    if (ttlMs === Number.POSITIVE_INFINITY) return
    cancel = after(ttlMs / 2, () => {
      renew(permit)
      try {
        wait()
      } catch {
        // The limiter is closed.
      }
    })
  }
  wait()
  return () => cancel?.()
}

/** Milliseconds; `Infinity` without places. */
function shortestTtlMs({ algorithm, windowMs, policies = [] }: Policy): number {
  return algorithm === 'concurrency' ? windowMs : Math.min(Number.POSITIVE_INFINITY, ...policies.map(shortestTtlMs))
}

/** Lets a permit run for its whole time again. A limiter that is closed or out of reach says so to the next request as well. */
export function renew(permit: Permit): void {
  try {
    ignore(permit.heartbeat())
  } catch {}
}
