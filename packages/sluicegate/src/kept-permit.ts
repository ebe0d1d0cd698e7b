import { ignore } from './awaitable.js'
import type { Permit } from './permit.js'
import type { Policy } from './policy/policy.js'

/** Calls `fn` once, `ms` from now; the returned function cancels it. */
export type After = (ms: number, fn: () => void) => () => void

/**
 * Keeps a permit from running out until the returned function is called: renews it each time that half of its time is over.
 *
 * @param policy the one that gave it.
 */
export function keptPermit(permit: Permit, policy: Policy, after: After): () => void {
  const ttlMs = shortestTtlMs(policy)
  let cancel: (() => void) | undefined
  const wait = (): void => {
    cancel = after(ttlMs / 2, () => {
      renew(permit)
      wait()
    })
  }
  if (ttlMs !== Number.POSITIVE_INFINITY) wait()
  return () => cancel?.()
}

/** Milliseconds; `Infinity` without places. */
function shortestTtlMs({ algorithm, windowMs, policies = [] }: Policy): number {
  return algorithm === 'concurrency' ? windowMs : Math.min(Number.POSITIVE_INFINITY, ...policies.map(shortestTtlMs))
}

/** A limiter that is closed or out of reach says so to the next request as well. */
function renew(permit: Permit): void {
  try {
    ignore(permit.heartbeat())
  } catch {}
}
