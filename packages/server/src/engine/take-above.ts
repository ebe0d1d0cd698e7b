import type { Decision, Key, Permit } from 'sluicegate'
import { type Awaitable, whenDone } from './awaitable.js'
import type { StoredLimiter } from './stored-limiter.js'

/**
 * A take that leaves `floor` tokens, or none. In memory nothing runs between the look and the take. At a store a take that came too close to the
 * floor, because of others in between, is given back.
 */
export function takeAbove(limiter: StoredLimiter, key: Key, cost: number, floor: number): Awaitable<Decision> {
  if (floor === 0) return limiter.take(key, cost)
  if (limiter.takeAbove !== undefined) return limiter.takeAbove(key, cost, floor)
  return whenDone(limiter.peek(key, cost + floor), (seen) => {
    if (!seen.allowed) return seen
    return whenDone(limiter.take(key, cost), (taken) => {
      if (!taken.allowed || taken.remaining >= floor || taken.source === 'outage') return taken
      const back: unknown = 'release' in taken ? (taken as Permit).release() : limiter.refund(key, cost)
      // If the store fails now, the tokens stay charged: fewer pass, never more.
      const given = back instanceof Promise ? back.catch(() => undefined) : back
      return whenDone<unknown, Decision>(given, () => refusedAgain(taken))
    })
  }) as Awaitable<Decision>
}

/** The denial of a take that was given back, since it came too close to what is kept for others. */
function refusedAgain({ limit, remaining, resetAfterMs, policy, source }: Decision): Decision {
  return { allowed: false, limit, remaining, retryAfterMs: 1, resetAfterMs, policy, source }
}
